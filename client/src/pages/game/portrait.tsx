// The phase portrait: where the gradients pull, lines of equal f, the orbits, and the start to drag.
import { useEffect, useMemo, useState } from "preact/hooks";
import { current, useAnswer } from "../../core/ask";
import { Panel, ProblemText } from "../../core/panel";
import { Plane, type Coordinates, type PlanePath, type PlanePoint } from "../../core/plane";
import { change, questionOf } from "../../core/state";
import type { GameFieldAnswer, OrbitAnswer } from "../../schema";
import { TONES, type GameProps } from "./state";

const LABELLED = 24; // places that still have room for their numbers
const FRAME = 220; // ms of a step that is played
const BREAK: Coordinates = [NaN, NaN];
const ABOUT =
  "The plane of both players. Grey arrows show where the gradients pull: the minimiser across, the maximiser upwards. Thin lines have equal f. " +
  "Drag the start, or move it by arrow keys, and the orbit follows; a purple line is one that the orbit can never leave.";

export function Portrait({ state, orbit }: GameProps) {
  const ground = questionOf("game_field", state);
  const drawn = useAnswer("game_field", ground);
  const field = drawn.problem ? null : current(drawn, ground, "view");
  const question = questionOf("game", state);
  const answer = orbit.answer;
  const [played, setPlayed] = usePlay(state.steps);
  const lines = useMemo(() => (field ? groundPaths(field) : []), [field]);
  const [x = 0, y = 0, half = 3] = state.view; // a link may hold fewer
  const box = { left: x - half, right: x + half, bottom: y - half, top: y + half };
  const last = played ?? state.steps;
  const zoom = (factor: number) => change({ view: [x, y, Math.min(1e6, Math.max(1e-5, half * factor))] });
  const move = ([p, q]: Coordinates) => {
    if (!answer) return;
    const [across, up] = answer.axes;
    change({ start: answer.start.map((text, index) => (index === across ? String(p) : index === up ? String(q) : text)) });
  };
  return (
    <Panel title="Phase portrait" about={ABOUT} panel="game" question={question} reading={orbit} picture>
      <div class="game-plane">
        <Plane
          label={answer ? altText(answer, field) : "the plane of both players"}
          box={box}
          paths={[...lines, ...(answer ? orbitPaths(answer, last) : [])]}
          points={[...restPoints(field), ...(answer ? orbitPoints(answer, last, move) : [])]}
          across={answer?.names[answer.axes[0]] ?? ""}
          up={answer?.names[answer.axes[1]] ?? ""}
          onPlace={move}
        />
      </div>
      <div class="game-tools">
        <button onClick={() => setPlayed(played === null ? 0 : null)}>{played === null ? "Play" : "Stop"}</button>
        <span class="game-count">{played === null ? `${state.steps} steps` : `step ${played} of ${state.steps}`}</span>
        <span class="grow" />
        <button onClick={() => zoom(0.7)} aria-label="Zoom in">+</button>
        <button onClick={() => zoom(1 / 0.7)} aria-label="Zoom out">−</button>
        <button onClick={() => answer && change({ view: answer.fit })} disabled={!answer?.tracks.length}>Fit</button>
      </div>
      {field && <p class="game-rest">{field.summary}</p>}
      {drawn.problem && !orbit.problem && <ProblemText problem={drawn.problem} />}
    </Panel>
  );
}

/** How many steps are shown while the orbit is played; null while it is not. */
function usePlay(steps: number): [number | null, (to: number | null) => void] {
  const [played, setPlayed] = useState<number | null>(null);
  useEffect(() => {
    if (played === null) return;
    const timer = setTimeout(() => setPlayed(played >= steps ? null : played + 1), FRAME);
    return () => clearTimeout(timer);
  }, [played, steps]);
  return [played, setPlayed];
}

function groundPaths({ levels, arrows }: GameFieldAnswer): PlanePath[] {
  const lines = (name: string) => levels.filter((one) => one.name === name).flatMap((one) => [...one.points, BREAK]);
  const named = [...new Set(levels.map((one) => one.name))];
  const ways = named.map((name): PlanePath => {
    const below = name === "f below";
    const above = name === "f above";
    return { points: lines(name), tone: below ? "mark" : above ? "other" : "soft", width: below || above ? 0.4 : 0.9, dashed: above, fit: false };
  });
  return [...ways, { points: arrows.flatMap(arrow), tone: "soft", width: 0.9, fit: false }];
}

/** A shaft with two short strokes at its tip. */
function arrow([ax, ay, bx, by]: [number, number, number, number]): Coordinates[] {
  const [x, y] = [(bx - ax) * 0.3, (by - ay) * 0.3];
  return [[ax, ay], [bx, by], [bx - x - 0.6 * y, by - y + 0.6 * x], BREAK, [bx, by], [bx - x + 0.6 * y, by - y - 0.6 * x], BREAK];
}

function orbitPaths({ tracks }: OrbitAnswer, last: number): PlanePath[] {
  return tracks.flatMap((track, index): PlanePath[] => [
    ...track.kept.map((line): PlanePath => ({ points: line.points, tone: "both", width: 1, fit: false })),
    { points: track.points.slice(0, last + 1), tone: TONES[index]!, width: track.points.length > 60 ? 1 : 1.6, dashed: index > 0, arrow: true },
  ]);
}

function orbitPoints({ tracks, names, axes, title }: OrbitAnswer, last: number, move: (to: Coordinates) => void): PlanePoint[] {
  const begin = tracks[0]?.points[0];
  const dots = tracks.flatMap((track, index) => {
    const many = Math.min(last + 1, track.points.length, track.period ? track.period : Infinity);
    const labels = index === 0 && many <= LABELLED;
    return track.points.slice(1, many).map(
      (at, place): PlanePoint => ({
        id: `${track.name} ${place + 1}`,
        at,
        name: `step ${place + 1}`,
        tone: TONES[index]!,
        size: many > 60 ? 2 : 3,
        shape: index % 2 ? "square" : "dot",
        ...(labels ? { label: String(place + 1) } : {}),
      }),
    );
  });
  if (!begin) return dots;
  return [...dots, { id: "start", at: begin, name: `start of ${title}: ${names[axes[0]]} and ${names[axes[1]]}`, label: "start", tone: "text", size: 7, onMove: move }];
}

function restPoints(field: GameFieldAnswer | null): PlanePoint[] {
  return (field?.rests ?? []).map((one, index) => ({
    id: `rest ${index}`,
    at: one.place,
    name: one.text,
    tone: "text",
    hollow: one.solves,
    shape: one.solves ? "dot" : "cross",
    size: 5,
  }));
}

function altText(answer: OrbitAnswer, field: GameFieldAnswer | null): string {
  const ways = answer.tracks.map((track) => `${track.label}: ${track.points.length - 1} steps from ${track.points[0]} to ${track.points.at(-1)}${track.period ? `, period ${track.period}` : ""}`);
  return [`${answer.title}.`, ...ways.map((way) => `${way}.`), field?.summary ?? ""].join(" ");
}
