// Asks the server: one question a panel at a time, the newest first; the last answer stays until the next is here.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answers, Problem } from "../schema";
import { HEADERS, send } from "./batch";
import { keep, recall } from "./answer-cache";
import { recorded } from "./recorded";
import { admitted } from "./priority";

export interface Reading<Answer> {
  answer: Answer | null; // the newest there is; it may belong to an older question
  to: string | null; // the question it belongs to, as JSON
  problem: Problem | null;
  busy: boolean;
}

let askers = 0; // each asker's older question makes way for its newer one
const NEWER_WAITS = 120; // ms after which a newer question no longer waits for the older

const NOTHING = { answer: null, to: null };
const BUSY: Problem = { kind: "busy", message: "", field: "", text: "", start: 0, end: 0, fixes: [] };

export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

/** The answer of a panel, or Refused with the reason. Of one asker's questions only the newest is worked on. */
export async function ask<Panel extends keyof Answers>(panel: Panel, question: object, signal?: AbortSignal, asker = ++askers): Promise<Answers[Panel]> {
  type Answer = Answers[Panel];
  const key = panel + JSON.stringify(question);
  const known = recall(key);
  if (known) return known.answer as Answer;
  const replayed = await recorded(panel, question);
  if (replayed) {
    if (replayed.problem) throw new Refused(replayed.problem);
    return replayed.answer as Answer;
  }
  const done = await admitted(panel, signal);
  const { status, found, length } = await send(panel, question, asker, signal).finally(done);
  if (status !== 200) throw new Refused(found as Problem);
  if (!(found as { late?: boolean }).late) keep(key, found, length); // what missed a deadline may come in time later
  return found as Answer;
}

/** The picture of a panel as a file. */
export async function askPicture(panel: string, question: object, form: "svg" | "png"): Promise<Blob> {
  const path = `api/${panel}/picture.${form}`;
  const replayed = await recorded(path, question);
  if (replayed) throw new Refused(replayed.problem!);
  const response = await fetch(path, { method: "POST", headers: HEADERS, body: JSON.stringify(question) });
  if (!response.ok) throw new Refused((await response.json()) as Problem);
  return response.blob();
}

/** What a panel answers to a question, as the question changes. null asks nothing; undefined asks nothing now, and
 * what was answered before stays. */
export function useAnswer<Panel extends keyof Answers>(panel: Panel, question: object | null | undefined): Reading<Answers[Panel]> {
  const [reading, setReading] = useState<Reading<Answers[Panel]>>({ answer: null, to: null, problem: null, busy: Boolean(question) });
  const asker = useRef(0);
  asker.current ||= ++askers;
  const running = useRef<{ abort: AbortController; begun: number; done: Promise<void> } | null>(null);
  const key = question && JSON.stringify(question);
  useEffect(() => {
    if (!question) {
      running.current?.abort.abort();
      setReading((old) => ({ ...(question === null ? NOTHING : old), problem: null, busy: false }));
      return;
    }
    let newest = true;
    const abort = new AbortController();
    const begin = async () => {
      const before = running.current;
      if (before) {
        const left = NEWER_WAITS - (performance.now() - before.begun);
        if (left > 0) await Promise.race([before.done, new Promise((r) => setTimeout(r, left))]);
        if (!newest) return;
        before.abort.abort();
      }
      const asking = ask(panel, question, abort.signal, asker.current).then(
        (answer) => newest && setReading({ answer, to: key ?? null, problem: null, busy: false }),
        (error: unknown) => {
          if (!newest || abort.signal.aborted) return;
          const problem =
            error instanceof Refused
              ? error.problem
              : { ...BUSY, message: "the server does not answer; is `lattend serve` still running?" };
          setReading((old) => ({ ...old, problem, busy: false }));
        },
      );
      running.current = { abort, begun: performance.now(), done: asking.then(() => undefined) };
    };
    setReading((old) => (old.busy ? old : { ...old, busy: true }));
    void begin();
    return () => {
      newest = false;
    };
  }, [panel, key]);
  useEffect(() => () => running.current?.abort.abort(), []);
  return reading;
}

/** The answer, if it belongs to this question, or to one that is other only in the field that is named. */
export function current<Answer>(reading: Reading<Answer>, question: object | null | undefined, but = ""): Answer | null {
  if (!question || reading.to === null) return null;
  if (!but) return reading.to === JSON.stringify(question) ? reading.answer : null;
  const older = JSON.parse(reading.to) as object;
  return JSON.stringify({ ...older, [but]: null }) === JSON.stringify({ ...question, [but]: null }) ? reading.answer : null;
}

/** Whether an answer may stand beside a panel's main one: where that is an older one, only if both are of the same rules. */
export function together<Answer>(main: Reading<Answer>, question: object | null | undefined, beside: Reading<unknown>): boolean {
  return !main.answer || current(main, question) !== null || rulesOf(main) === rulesOf(beside);
}

function rulesOf({ to }: Reading<unknown>): string {
  const { rule, other } = JSON.parse(to ?? "{}") as { rule?: string; other?: string };
  return JSON.stringify([rule, other]);
}
