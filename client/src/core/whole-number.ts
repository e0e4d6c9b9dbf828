// Whole numbers as people type them: 65,536, 1e6, 2^16; a text where one has more than 53 bits.

const LONGEST = 60; // digits

/** The number; null where there is none, undefined where the text is something else. */
export function wholeNumber(text: string): number | string | null | undefined {
  const digits = text.replace(/[\s,_]/g, "").replace("−", "-");
  if (digits === "") return null;
  const power = /^(\d{1,6})(?:\^|\*\*)(\d{1,3})$/.exec(digits);
  const tens = /^(\d{1,15})e\+?(\d{1,2})$/i.exec(digits);
  let value: bigint;
  if (power) value = BigInt(power[1]!) ** BigInt(power[2]!);
  else if (tens) value = BigInt(tens[1]!) * 10n ** BigInt(tens[2]!);
  else if (/^-?\d+$/.test(digits) && digits.length <= LONGEST) value = BigInt(digits);
  else return undefined;
  if (value.toString().length > LONGEST) return undefined;
  return BigInt(Number.MIN_SAFE_INTEGER) <= value && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value.toString();
}
