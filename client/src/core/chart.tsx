// Curves over one size: linear or log axes, marks with labels, a legend that hides curves, a cursor for mouse and keys.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./chart.css";
import { drawMarks, type Mark } from "./chart_marks";
import { isDark } from "./theme";
import { letterScale } from "./width";

export interface Curve {
  name: string;
  y: (number | null)[]; // null: the curve is not defined there
  texts?: string[]; // the exact values, where a number of JavaScript would round them
  points?: boolean; // dots only
}

interface Props {
  about: string; // what is seen, in words
  x: number[];
  curves: Curve[];
  xName: string;
  yName?: string;
  xLog?: 2 | 10; // ticks at powers of this
  yLog?: 2 | 10;
  xText?: (x: number) => string;
  yText?: (y: number) => string;
  yRange?: [number, number];
  marks?: Mark[];
  height?: number;
  hidden?: string[]; // names of curves that are not drawn; kept by the chart itself unless onHidden is given
  onHidden?: (names: string[]) => void;
}

const COLOURS = ["--mark", "--other", "--good", "--both", "--warn", "--bad"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 4], [14, 4]]; // never colour alone
const [LEAST, MOST] = [1e-40, 1e40]; // on a log axis, which has no place for 0 and gets slow over hundreds of decades
const HEIGHT = 320;

const colour = (index: number) => COLOURS[index % COLOURS.length]!;
const dash = (index: number) => DASHES[(index + Math.floor(index / COLOURS.length)) % DASHES.length]!;

export function Chart(props: Props) {
  const { about, x, curves, xName, yName, xLog, yLog, marks = [] } = props;
  const scale = letterScale();
  const height = (props.height ?? HEIGHT) * scale;
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const newest = useRef(props);
  newest.current = props;
  const [own, setOwn] = useState<string[]>([]);
  const [cursor, setCursor] = useState<number | null>(null);
  const hidden = (props.onHidden ? props.hidden : own) ?? [];
  const hide = props.onHidden ?? setOwn;
  const label = useId();

  const shape = JSON.stringify([curves.map((curve) => [curve.name, curve.points]), xName, yName, xLog, yLog, height, isDark.value]);
  useEffect(() => {
    const made = new uPlot(options(newest, host.current!, setCursor), data(newest.current), host.current!);
    plot.current = made;
    const sized = new ResizeObserver(([entry]) => made.setSize({ width: Math.floor(entry!.contentRect.width), height }));
    sized.observe(host.current!);
    return () => {
      sized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(data(props)), [JSON.stringify([x, curves.map((curve) => curve.y), props.yRange])]);
  useEffect(() => plot.current?.redraw(false), [JSON.stringify(marks)]);
  useEffect(() => {
    curves.forEach((curve, index) => {
      const show = !hidden.includes(curve.name);
      if (plot.current && plot.current.series[index + 1]?.show !== show) plot.current.setSeries(index + 1, { show });
    });
  }, [hidden.join("\n"), shape]);

  const at = cursor !== null && cursor < x.length ? cursor : null;
  const xText = props.xText ?? plain;
  const value = (curve: Curve, index: number) => {
    const found = curve.y[index];
    return curve.texts?.[index] ?? (found === null || found === undefined ? "none" : (props.yText ?? plain)(found));
  };
  const shown = curves.filter((curve) => !hidden.includes(curve.name));
  const readout = at === null ? "no place chosen" : `${xName} = ${xText(x[at]!)}: ${shown.map((curve) => `${curve.name} ${value(curve, at)}`).join("; ")}`;

  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !plot.current || !x.length) return;
    event.preventDefault();
    const from = at ?? (step < 0 ? x.length : -1); // the first key shows an end
    const to = Math.max(0, Math.min(x.length - 1, from + step));
    plot.current.setCursor({ left: plot.current.valToPos(x[to]!, "x"), top: plot.current.over.clientHeight / 2 });
  };

  return (
    <figure class="chart" data-picture>
      <div class="chart-box">
        <div ref={host} role="img" aria-label={about} />
        <div
          class="chart-cursor"
          role="slider"
          tabIndex={0}
          aria-label={`Place along ${xName}`}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, x.length - 1)}
          aria-valuenow={at ?? 0}
          aria-valuetext={readout}
          onKeyDown={move}
        />
      </div>
      <figcaption>
        <span class="chart-place" id={label}>{at === null ? <>Curves over {xName}</> : <>{xName} = {xText(x[at]!)}</>}</span>
        <ul aria-labelledby={label}>
          {curves.map((curve, index) => (
            <li>
              <button
                class="quiet"
                aria-pressed={!hidden.includes(curve.name)}
                title={hidden.includes(curve.name) ? `Show ${curve.name}` : `Hide ${curve.name}`}
                onClick={() => hide(hidden.includes(curve.name) ? hidden.filter((name) => name !== curve.name) : [...hidden, curve.name])}
              >
                <svg viewBox="0 0 28 8" width="28" height="8" aria-hidden="true">
                  <line x1="0" x2="28" y1="4" y2="4" style={{ stroke: `var(${colour(index)})` }} stroke-width="2.5" stroke-dasharray={dash(index).join(" ")} />
                </svg>
                {curve.name}
              </button>
              {at !== null && !hidden.includes(curve.name) && <span class="chart-value">{value(curve, at)}</span>}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

function data({ x, curves, yLog }: Props): uPlot.AlignedData {
  const outside = (y: number) => (yLog ? y < LEAST || y > MOST : false);
  const drawn = (y: number | null) => (y === null || !Number.isFinite(y) || outside(y) ? null : y);
  return [x, ...curves.map((curve) => curve.y.map(drawn))];
}

function options(newest: { current: Props }, host: HTMLElement, setCursor: (index: number | null) => void): uPlot.Options {
  const { curves, xName, yName, xLog, yLog, height = HEIGHT } = newest.current;
  const scale = letterScale();
  const style = getComputedStyle(host);
  const paint = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: paint("--soft"), grid: { stroke: paint("--shade"), width: 1 }, ticks: { stroke: paint("--line"), width: 1 }, font: `${12 * scale}px ${paint("--font")}`, labelFont: `${13 * scale}px ${paint("--font")}` };
  const ticks = (log: 2 | 10 | undefined, text: () => ((value: number) => string) | undefined) => (_: uPlot, values: (number | null)[]) =>
    values.map((value) => (value === null ? "" : (text() ?? (log ? power(log) : plain))(value)));
  const axisOf = (log?: 2 | 10) => (log === 10 ? { ...axis, grid: { ...axis.grid, filter: decades }, ticks: { ...axis.ticks, filter: decades } } : axis);
  return {
    width: host.clientWidth,
    height: height * scale,
    legend: { show: false },
    padding: [12 * scale, 16 * scale, 0, 0],
    cursor: { drag: { x: false, y: false }, points: { size: 8 }, y: false },
    scales: {
      x: { time: false, ...(xLog ? { distr: 3, log: xLog } : {}), range: (_, low, high) => (low === high ? [low * 0.9 - (low ? 0 : 1), high * 1.1 + (high ? 0 : 1)] : [low, high]) },
      y: yLog ? { distr: 3, log: yLog } : { range: (_, low, high) => newest.current.yRange ?? uPlot.rangeNum(low ?? 0, high ?? 1, 0.08, true) },
    },
    axes: [
      { ...axisOf(xLog), label: xName, labelSize: 20 * scale, size: 36 * scale, space: 64 * scale, values: ticks(xLog, () => newest.current.xText) },
      { ...axisOf(yLog), ...(yName ? { label: yName, labelSize: 22 * scale } : {}), size: 64 * scale, space: 30 * scale, values: ticks(yLog, () => newest.current.yText) },
    ],
    series: [
      {},
      ...curves.map((curve, index) => ({
        label: curve.name,
        stroke: paint(colour(index)),
        width: curve.points ? 0 : 2 * scale,
        pxAlign: 0, // places between pixels: a straight line stays straight
        dash: dash(index),
        points: { show: curve.points ?? curve.y.length === 1, size: 6, fill: paint(colour(index)) },
      })),
    ],
    hooks: {
      setCursor: [(made) => setCursor(made.cursor.left! < 0 ? null : (made.cursor.idx ?? null))],
      draw: [(made) => drawMarks(made, newest.current.marks ?? [], paint)],
    },
  };
}

/** Lines at powers of ten only, where there are many of them. */
function decades(_: uPlot, values: number[]): (number | null)[] {
  const many = values.at(-1)! / values[0]! > 1e3;
  return values.map((value) => (many && Math.log10(value) % 1 ? null : value));
}

/** 12,345 or 0.125: as people write numbers. */
function plain(value: number): string {
  return Math.abs(value) >= 1e7 ? power(10)(value) : value.toLocaleString("en", { maximumSignificantDigits: 6 });
}

/** 10⁹, 2·10⁹, 2²⁰: what a log axis says. */
function power(base: 2 | 10): (value: number) => string {
  return (value) => {
    const size = Math.abs(value);
    if (size === 0 || (size < 1e4 && size >= 1e-3)) return value.toLocaleString("en", { maximumSignificantDigits: 4 });
    const twos = Math.log2(size);
    if (base === 2 && twos % 1 === 0) return `2${raised(twos)}`;
    const [digits, tens] = value.toExponential(2).split("e") as [string, string];
    return Number(digits) === 1 ? `10${raised(Number(tens))}` : `${Number(digits)}·10${raised(Number(tens))}`;
  };
}

function raised(exponent: number): string {
  return [...String(exponent)].map((digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)])).join("");
}
