// A formula in plain text, its _ and ^ set as subscripts and superscripts: W_in, A_{q,k}, e^(−αδ²).

// After one or two letters or a bracket; a longer word such as head_dim is a name
const SCRIPT = /(?<=(?<![\p{L}\d_])\p{L}{1,2}|[)\]}‖])([_^])(\{[^{}]*\}|\([^()]*\)|[\p{L}\d]+)/gu;

export function Scripts({ text }: { text: string }) {
  const parts = text.split(SCRIPT); // plain, sign, script, plain, sign, script, …, plain
  return (
    <>
      {parts.map((part, place) => {
        const sign = parts[place - 1];
        if (place % 3 === 0) return part;
        if (place % 3 === 1) return null;
        const script = /^\{.*\}$|^\(.{2,}\)$/.test(part) ? part.slice(1, -1) : part; // A^(h) keeps its brackets
        return sign === "_" ? <sub>{script}</sub> : <sup>{script}</sup>;
      })}
    </>
  );
}
