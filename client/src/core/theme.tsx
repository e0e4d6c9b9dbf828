// Light, dark, or as the system has it.
import { signal } from "@preact/signals";
import { store, stored } from "./stored";

type Theme = "auto" | "light" | "dark";
const NEXT: { [theme in Theme]: Theme } = { auto: "light", light: "dark", dark: "auto" };
const KEPT = "lattend-theme";
const chosen = stored(KEPT);
export const theme = signal<Theme>(chosen === "light" || chosen === "dark" ? chosen : "auto");
const system = matchMedia("(prefers-color-scheme: dark)");
export const isDark = signal(false);

function apply(): void {
  isDark.value = theme.value === "dark" || (theme.value === "auto" && system.matches);
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
}

system.addEventListener("change", apply);
apply();

export function ThemeButton() {
  const turn = () => {
    theme.value = NEXT[theme.value];
    store(KEPT, theme.value === "auto" ? null : theme.value);
    apply();
  };
  return (
    <button class="quiet" onClick={turn} title="Light, dark, or as the system has it">
      Theme: {theme.value}
    </button>
  );
}
