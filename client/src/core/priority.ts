// Some questions have priority, so that what a person looks at first is not kept waiting by the rest of the page.

const FIRST = new Set(["start", "read", "other", "count", "tiles"]); // these never wait; the others wait for them. The server's list is the same
const PAUSE = 200; // ms after the last of the first: longer than from key to key, so that what is typed in one go is asked once
const LONGEST = 500; // ms for which they are waited for
const LOOK = 15; // ms
let first = 0; // of the first that run
let begun = -PAUSE; // when the last of them began

/** Waits until the panel may ask, and gives what ends that; raises where the question is aborted before. */
export async function admitted(panel: string, signal?: AbortSignal): Promise<() => void> {
  if (FIRST.has(panel)) {
    first += 1;
    begun = performance.now();
    return () => void (first -= 1);
  }
  const here = performance.now();
  const early = () => (first > 0 || performance.now() - begun < PAUSE) && performance.now() - here < LONGEST;
  while (early()) {
    await new Promise((resolve) => setTimeout(resolve, LOOK));
    signal?.throwIfAborted();
  }
  return () => undefined;
}
