// Sends the questions of one moment together and gives each its answer as it comes: a browser opens few connections.

export interface Reply {
  status: number;
  found: unknown; // the answer, or the problem
  length: number; // of it, in characters
}
interface Asked {
  panel: string;
  question: object;
  asker: number;
  signal: AbortSignal | undefined;
  tries: number;
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

const PAGE = Math.random().toString(36).slice(2); // whose questions take turns with those of other pages
export const HEADERS = { "content-type": "application/json", "x-lattend-page": PAGE };
const TOGETHER = 32; // questions, the most that the server takes at once
const LONG = 20_000; // characters of a question that travels alone
const RETRIES = [300, 1000]; // ms
let waiting: Asked[] = [];

/** The reply to one question. Of one asker's questions only the newest is worked on. */
export function send(panel: string, question: object, asker: number, signal?: AbortSignal): Promise<Reply> {
  return new Promise((resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    enqueue({ panel, question, asker, signal, tries: 0, resolve, reject });
  });
}

function enqueue(asked: Asked): void {
  if (waiting.push(asked) === 1) setTimeout(flush);
}

function flush(): void {
  const wanted: Asked[] = [];
  for (const asked of waiting) {
    if (asked.signal?.aborted) asked.reject(asked.signal.reason);
    else wanted.push(asked);
  }
  waiting = [];
  const long = wanted.filter((asked) => JSON.stringify(asked.question).length > LONG);
  for (const asked of long) void post([asked]);
  const short = wanted.filter((asked) => !long.includes(asked));
  for (let from = 0; from < short.length; from += TOGETHER) void post(short.slice(from, from + TOGETHER));
}

async function post(batch: Asked[]): Promise<void> {
  const open = new Set(batch);
  const abort = new AbortController();
  const leave = () => {
    if (open.size > 0 && [...open].every((asked) => asked.signal?.aborted)) abort.abort(); // nobody waits any more
  };
  for (const asked of batch) asked.signal?.addEventListener("abort", leave, { once: true });
  const settle = (asked: Asked, reply: Reply) => {
    open.delete(asked);
    leave();
    const crowded = reply.status === 429 || reply.status === 503; // too much at once; later it may go
    if (!(crowded && again(asked))) asked.resolve(reply);
  };
  let failure: unknown = new Error("the answer ended before its end");
  try {
    const body = JSON.stringify(batch.map(({ panel, asker, question }) => [panel, String(asker), question]));
    const response = await fetch("api/batch", { method: "POST", headers: HEADERS, body, signal: abort.signal });
    if (response.ok)
      for await (const line of lines(response.body!)) {
        const [place, status, found] = JSON.parse(line) as [number, number, unknown];
        settle(batch[place]!, { status, found, length: line.length });
      }
    else {
      const found = (await response.json()) as unknown;
      for (const asked of batch) settle(asked, { status: response.status, found, length: 0 });
    }
  } catch (error) {
    failure = error;
  }
  for (const asked of open) if (!again(asked)) asked.reject(failure);
}

/** Asks once more after a while, unless it was tried often enough. */
function again(asked: Asked): boolean {
  const wait = RETRIES[asked.tries];
  if (wait === undefined || asked.signal?.aborted) return false;
  setTimeout(() => enqueue({ ...asked, tries: asked.tries + 1 }), wait);
  return true;
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop()!;
    yield* parts;
  }
}
