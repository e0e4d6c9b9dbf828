// What this browser keeps between visits; where it may keep nothing, nothing is kept.

export function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text; null forgets it. */
export function store(name: string, text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    return; // storage is blocked or full
  }
}
