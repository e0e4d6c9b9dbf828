// Answers that were given lately; the one that was looked at longest ago goes first.

const MOST = 8_000_000; // characters of questions and answers together
const LONG = 20_000; // of a question that is not kept

interface Known {
  answer: unknown;
  size: number;
}

const known = new Map<string, Known>();
let total = 0;

/** The answer to a question, if it is known. */
export function recall(key: string): Known | undefined {
  const found = known.get(key);
  if (!found) return undefined;
  known.delete(key);
  known.set(key, found); // now the newest
  return found;
}

/** Keeps an answer of this many characters. */
export function keep(key: string, answer: unknown, length: number): void {
  const size = key.length + length;
  if (key.length > LONG || size > MOST) return;
  total += size - (known.get(key)?.size ?? 0);
  known.delete(key);
  known.set(key, { answer, size });
  for (const [oldest, { size }] of known) {
    if (total <= MOST) return;
    known.delete(oldest);
    total -= size;
  }
}
