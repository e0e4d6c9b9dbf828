// Where one mistake spoils many panels, the first on the page says what it is, and the others say that it is said.
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

interface Said {
  message: string;
  place: Element;
}

const said = signal<Said[]>([]); // in the order of the page

const before = (one: Said, other: Said) => (one.place.compareDocumentPosition(other.place) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);

/** Whether this place is the first on the page that has this message to say. */
export function useFirstSaid(place: { current: Element | null }, message: string): boolean {
  useLayoutEffect(() => {
    const own = { message, place: place.current! };
    said.value = [...said.value, own].sort(before);
    return () => {
      said.value = said.value.filter((one) => one !== own);
    };
  }, [message]);
  const first = said.value.find((one) => one.message === message);
  return !first || first.place === place.current;
}
