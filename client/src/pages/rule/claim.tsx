import type { RuleProps } from "./state";

export function ClaimPanel(_: RuleProps) {
  return null;
}
