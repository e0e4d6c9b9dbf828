// Questions from course notes on attention: found by words, answered by what the commands print, opened on their page.
import { useEffect, useRef, useState } from "preact/hooks";
import type { AskedCommand, AskedQuestion } from "../schema";
import { current, useAnswer } from "./ask";
import { titleOf } from "./menus";
import { Copy } from "./panel";
import { visit, type State } from "./state";

const LEFT_OUT = /\.\.\./;

export function Questions() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (isOpen) dialog.current!.showModal();
  }, [isOpen]);
  return (
    <>
      <button class="menus-button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        Questions
      </button>
      <dialog
        ref={dialog}
        class="questions"
        aria-label="Questions from course notes"
        onClose={() => setOpen(false)}
        onClick={(event) => event.target === dialog.current && dialog.current!.close()}
      >
        {isOpen && <Browser close={() => dialog.current!.close()} />}
      </dialog>
    </>
  );
}

function Browser({ close }: { close: () => void }) {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const { answer: all, problem } = useAnswer("questions", {});
  const asked = words.trim();
  const question = asked ? { words: asked } : null;
  const finding = useAnswer("ask", question);
  const { answer: found, problem: lost } = finding;
  const shown = !all ? [] : !asked ? all.questions : lost ? containing(all.questions, asked) : all.questions.filter((one) => found?.numbers.includes(one.number));
  const topics = [...new Set(shown.map((one) => one.topic))];
  const place = useRef<HTMLDivElement>(null);
  const [entered, setEntered] = useState<string | null>(null); // the words with which Enter was pressed, until they are found
  const ready = entered !== null && all && (!question || lost || current(finding, question));
  useEffect(() => {
    if (!ready) return;
    setEntered(null);
    if (entered !== asked || !shown[0]) return;
    setChosen(shown[0].number);
    place.current!.querySelector("summary")!.focus();
  }, [ready]);
  return (
    <div ref={place}>
      <div class="questions-head">
        <input
          type="search"
          aria-label="Find questions"
          placeholder="sliding window, big-O, vanish …"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && setEntered(asked)}
        />
        <span role="status">
          {all && `${shown.length} of ${all.questions.length}`}
          {asked && found?.nearest && shown.length > 0 && ", the nearest"}
        </span>
        <button onClick={close}>Close</button>
      </div>
      {problem && <p>{problem.message}</p>}
      <p class="questions-about">Questions from course notes on attention, each with what the notes answer, commands that say what is so, and the page that shows it.</p>
      {asked && found?.nearest && found.close.length > 0 && (
        <p class="questions-close">
          did you mean{" "}
          {found.close.map((word) => (
            <button onClick={() => setWords(word)}>{word}</button>
          ))}
        </p>
      )}
      {topics.map((topic) => (
        <section>
          <h2>{topic}</h2>
          {shown
            .filter((one) => one.topic === topic)
            .map((one) => (
              <details key={one.number} open={one.number === chosen} onToggle={(event) => event.currentTarget.open && setChosen(one.number)}>
                <summary>
                  <span class="questions-number">{one.number}</span> {one.asks}
                </summary>
                {one.number === chosen && <Answered question={one} close={close} />}
              </details>
            ))}
        </section>
      ))}
    </div>
  );
}

/** The questions in which every word stands, or another name for it, where no server knows better. */
function containing(questions: AskedQuestion[], words: string): AskedQuestion[] {
  const wanted = words.toLowerCase().split(/[\s?!.,;:]+/);
  return questions.filter((one) => wanted.every((word) => JSON.stringify(one).toLowerCase().includes(word)));
}

function Answered({ question, close }: { question: AskedQuestion; close: () => void }) {
  return (
    <div class="questions-answer">
      {question.notes && <p>The course notes answer: {question.notes}</p>}
      {question.commands.map((command) => (
        <Ran command={command} close={close} />
      ))}
      {question.remark && <p>{question.remark}</p>}
      {question.python && (
        <details class="questions-python">
          <summary>the same in Python</summary>
          <pre tabIndex={0}>{question.python}</pre>
        </details>
      )}
    </div>
  );
}

function Ran({ command, close }: { command: AskedCommand; close: () => void }) {
  const title = command.place && titleOf(command.place.page);
  return (
    <div class="questions-ran">
      <div class="questions-line">
        <code>$ {command.line}</code>
        <Copy name="Shell" text={command.line} />
        {command.place && title && (
          <button
            onClick={() => {
              visit(command.place!.page, command.place!.state as State);
              close();
            }}
          >
            Open on the page {title}
          </button>
        )}
      </div>
      {command.printed && <pre tabIndex={0}>{command.printed}</pre>}
      {LEFT_OUT.test(command.printed) && (
        <p class="questions-about">... stands for what is left out here; {title ? "the page shows it, and the command prints it" : "the command prints it"}.</p>
      )}
    </div>
  );
}
