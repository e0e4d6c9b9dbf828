// A record of one's own: chosen as a file, or dropped on the page.
import { useState } from "preact/hooks";
import { say } from "../../core/live";

const LONGEST = 900_000; // characters

export interface RecordFile {
  name: string;
  text: string;
}

interface Props {
  file: RecordFile | null;
  onFile: (file: RecordFile | null) => void;
}

export function RecordField({ file, onFile }: Props) {
  const [over, setOver] = useState(false);
  const read = async (given: File | null | undefined) => {
    if (!given) return;
    if (given.size > LONGEST) say(`${given.name} has ${given.size.toLocaleString("en")} bytes; a record here has at most ${LONGEST.toLocaleString("en")}`);
    else onFile({ name: given.name, text: await given.text() });
  };
  return (
    <div
      class={over ? "heads-file over" : "heads-file"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void read(event.dataTransfer?.files[0]);
      }}
    >
      <span>{file ? file.name : "handwritten digits, recorded"}</span>
      <label>
        <input
          type="file"
          accept=".json,application/json"
          onChange={(event) => {
            void read(event.currentTarget.files?.[0]);
            event.currentTarget.value = "";
          }}
        />
        <span>Open or drop another record.json</span>
      </label>
      {file && <button onClick={() => onFile(null)}>Back to the digits</button>}
    </div>
  );
}
