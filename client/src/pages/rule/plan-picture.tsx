// The library's own picture of a plan, for rules on images: the keys that one tile reads.
import { useEffect, useState } from "preact/hooks";
import { askPicture } from "../../core/ask";

const WAIT = 150; // ms without a change before a picture is asked for

export function PlanPicture({ question, title }: { question: object; title: string }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    let newest = true;
    const waiting = setTimeout(() => {
      askPicture("explain", question, "svg").then(
        (picture) => newest && setAddress(URL.createObjectURL(picture)),
        () => newest && setAddress(""),
      );
    }, WAIT);
    return () => {
      newest = false;
      clearTimeout(waiting);
    };
  }, [JSON.stringify(question)]);
  useEffect(() => () => URL.revokeObjectURL(address), [address]);
  return address ? <img class="plan-picture" src={address} alt={`The tile in the middle of the image and the keys it reads: ${title}`} /> : null;
}
