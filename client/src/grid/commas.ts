// Whole numbers for people: 1,048,576.
const format = new Intl.NumberFormat("en");

export function commas(value: number): string {
  return format.format(value);
}
