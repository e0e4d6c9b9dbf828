// Questions take turns, so that what a person looks at first is not kept waiting by the rest of the page.

const AT_ONCE = 3;
const FIRST = new Set(["start", "read", "other", "count", "tiles"]); // these never wait
const waiting: (() => void)[] = [];
let running = 0;

/** Waits for the panel's turn, and gives what ends it. An aborted question leaves the line. */
export async function turn(panel: string, signal?: AbortSignal): Promise<() => void> {
  if (FIRST.has(panel)) return () => undefined;
  if (running >= AT_ONCE) {
    await new Promise<void>((go, leave) => {
      const called = () => {
        signal?.removeEventListener("abort", left);
        go();
      };
      const left = () => {
        waiting.splice(waiting.indexOf(called), 1);
        leave(new DOMException("a newer question is here", "AbortError"));
      };
      waiting.push(called);
      signal?.addEventListener("abort", left, { once: true });
    });
  }
  running += 1;
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    running -= 1;
    waiting.shift()?.();
  };
}
