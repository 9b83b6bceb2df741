/** Draws the charts as SVG in the theme's colors, with tooltips. */

import { useElementSize } from '@mantine/hooks'
import { type ReactNode, useState } from 'react'
import type { Grouping } from '../search.ts'
import type { PlainKey } from '../strings/catalogue.ts'
import { t } from '../strings/language.ts'
import { breakLabel, listLabelled, listTicks } from './scale.ts'
import { type Line, renderShortDay } from './use-usage.ts'

export interface Series {
  readonly name: PlainKey
  /** A CSS color. */
  readonly color: string
  /** Returns null if there is no measurement. */
  readonly read: (line: Line) => number | null
}

export interface ChartPanelProps {
  readonly title: string
  /** The accessible name of the drawing. */
  readonly label: string
  /** The accessible name of the table with the data. */
  readonly dataLabel: string
  readonly by: Grouping
  readonly lines: readonly Line[]
  readonly series: readonly Series[]
  /** `'lines'` is only for days, because a line between agents, models or keys would be meaningless. */
  readonly shape: 'bars' | 'lines'
  readonly render: (value: number) => string
  /** Called when the user clicks a bar. */
  readonly onPick: (line: Line) => void
}

const HEIGHT = 200
const ROW_HEIGHT = 34
/** Width of the space for the axis labels to the left of a chart by day, in pixels. */
const LEFT = 56
const RIGHT = 8
const TOP = 8
const BOTTOM = 24
const LABEL_WIDTH = 168
/** Width of a day's label with the space around it. */
const DAY_WIDTH = 76
/** Share of a day or a row that the bars fill. */
const FILLED = 0.72
const MAX_COLUMN = 36
const MAX_BAR = 20

export function LinePlot(props: ChartPanelProps) {
  const { lines, series } = props
  const ticks = listTicks(maxOf(props, false), false)
  return (
    <DayPlot {...props} ticks={ticks}>
      {({ xOf, yOf }) =>
        series.map(({ name, color, read }) => (
          <g key={name} stroke={color} fill={color}>
            <path d={toPath(lines, read, xOf, yOf)} fill="none" strokeWidth={2} />
            {lines.map((line, index) => {
              const value = read(line)
              return value === null ? null : (
                <circle key={line.id} cx={xOf(index)} cy={yOf(value)} r={2.5} stroke="none" />
              )
            })}
          </g>
        ))
      }
    </DayPlot>
  )
}

/** Draws vertical bars for days, and horizontal bars for all other groupings, to leave space for names. */
export function BarPlot(props: ChartPanelProps) {
  return props.by === 'day' ? <VerticalBars {...props} /> : <HorizontalBars {...props} />
}

function VerticalBars(props: ChartPanelProps) {
  const { lines, series, onPick } = props
  return (
    <DayPlot {...props} ticks={listTicks(maxOf(props, true), true)}>
      {({ xOf, yOf, step }) => {
        const width = Math.min(step * FILLED, MAX_COLUMN)
        return lines.map((line, index) => (
          <Pickable key={line.id} line={line} onPick={onPick}>
            {stack(line, series).map(({ name, color, from, to }) => (
              <rect
                key={name}
                x={xOf(index) - width / 2}
                y={yOf(to)}
                width={width}
                height={yOf(from) - yOf(to)}
                fill={color}
              />
            ))}
          </Pickable>
        ))
      }}
    </DayPlot>
  )
}

interface Scale {
  /** Returns the horizontal center of the day at `index`, in pixels. */
  readonly xOf: (index: number) => number
  readonly yOf: (value: number) => number
  /** Horizontal distance between two adjacent days, in pixels. */
  readonly step: number
}

interface DayPlotProps extends ChartPanelProps {
  readonly ticks: readonly number[]
  readonly children: (scale: Scale) => ReactNode
}

/** Draws the axes of a chart by day, and shows the tooltip of the day under the pointer. */
function DayPlot({ label, lines, series, render, ticks, children }: DayPlotProps) {
  const { ref, width } = useElementSize()
  const [shown, setShown] = useState<number>()
  const inner = Math.max(width - LEFT - RIGHT, 0)
  const step = inner / Math.max(lines.length, 1)
  const top = ticks.at(-1) as number
  const bottom = HEIGHT - BOTTOM
  const xOf = (index: number) => LEFT + step * (index + 0.5)
  const yOf = (value: number) => bottom - (value / top) * (bottom - TOP)
  const point = shown === undefined ? undefined : lines[shown]
  return (
    <div className="plot" ref={ref}>
      <svg
        role="img"
        aria-label={label}
        width={width}
        height={HEIGHT}
        onPointerMove={({ nativeEvent: { offsetX } }) => setShown(Math.floor((offsetX - LEFT) / step))}
        onPointerLeave={() => setShown(undefined)}
      >
        {ticks.map((value) => (
          <g key={value}>
            <line className="plot-grid" x1={LEFT} x2={width - RIGHT} y1={yOf(value)} y2={yOf(value)} />
            <text x={LEFT - 8} y={yOf(value)} dy="0.35em" textAnchor="end">
              {render(value)}
            </text>
          </g>
        ))}
        {listLabelled(lines.length, inner, DAY_WIDTH).map((index) => (
          <text key={index} x={Math.min(xOf(index), width - 22)} y={HEIGHT - 6} textAnchor="middle">
            {renderShortDay(lines[index]?.id ?? '')}
          </text>
        ))}
        {point === undefined || shown === undefined ? null : (
          <rect
            className="plot-cursor"
            x={xOf(shown) - step / 2}
            y={TOP}
            width={step}
            height={bottom - TOP}
          />
        )}
        {width === 0 ? null : children({ xOf, yOf, step })}
      </svg>
      {point === undefined || shown === undefined ? null : (
        <Tooltip
          line={point}
          label={renderShortDay(point.id)}
          series={series}
          render={render}
          x={xOf(shown)}
          y={TOP}
          width={width}
        />
      )}
    </div>
  )
}

function HorizontalBars(props: ChartPanelProps) {
  const { label, series, lines, render, shape, onPick } = props
  const { ref, width } = useElementSize()
  const [shown, setShown] = useState<number>()
  const isStacked = shape === 'bars'
  const ticks = listTicks(maxOf(props, isStacked), isStacked)
  const left = Math.min(LABEL_WIDTH, width * 0.45)
  const bottom = TOP + Math.max(lines.length, 2) * ROW_HEIGHT
  const scale = Math.max(width - left - 2 * RIGHT, 0) / (ticks.at(-1) as number)
  const yOf = (index: number) => TOP + ROW_HEIGHT * (index + 0.5)
  const point = shown === undefined ? undefined : lines[shown]
  return (
    <div className="plot" ref={ref}>
      <svg
        role="img"
        aria-label={label}
        width={width}
        height={bottom + BOTTOM}
        onPointerMove={({ nativeEvent: { offsetY } }) => setShown(Math.floor((offsetY - TOP) / ROW_HEIGHT))}
        onPointerLeave={() => setShown(undefined)}
      >
        {ticks.map((value, index) => (
          <g key={value}>
            <line
              className="plot-grid"
              x1={left + value * scale}
              x2={left + value * scale}
              y1={TOP}
              y2={bottom}
            />
            <text
              x={left + value * scale}
              y={bottom + 18}
              textAnchor={index === ticks.length - 1 ? 'end' : 'middle'}
            >
              {isCrowded(ticks, index, scale) ? '' : render(value)}
            </text>
          </g>
        ))}
        {point === undefined || shown === undefined ? null : (
          <rect
            className="plot-cursor"
            x={left}
            y={yOf(shown) - ROW_HEIGHT / 2}
            width={Math.max(width - left - RIGHT, 0)}
            height={ROW_HEIGHT}
          />
        )}
        {lines.map((line, index) => (
          <Pickable key={line.id} line={line} onPick={onPick}>
            <Name name={line.name} x={left - 8} y={yOf(index)} />
            <RowBars
              line={line}
              series={series}
              isStacked={isStacked}
              x={left}
              y={yOf(index)}
              scale={scale}
            />
          </Pickable>
        ))}
      </svg>
      {point === undefined || shown === undefined ? null : (
        <Tooltip
          line={point}
          label={point.name}
          series={series}
          render={render}
          x={left}
          y={yOf(shown) + ROW_HEIGHT / 2}
          width={width}
        />
      )}
    </div>
  )
}

/** Width of a label below a horizontal chart, in pixels. */
const VALUE_WIDTH = 44

/** Returns whether the label must be hidden, because all labels together would overlap. */
function isCrowded(ticks: readonly number[], index: number, scale: number): boolean {
  const step = (ticks[1] ?? 0) * scale
  return step < VALUE_WIDTH && (ticks.length - 1 - index) % Math.ceil(VALUE_WIDTH / Math.max(step, 1)) !== 0
}

interface RowBarsProps {
  readonly line: Line
  readonly series: readonly Series[]
  readonly isStacked: boolean
  readonly x: number
  /** Vertical center of the row. */
  readonly y: number
  /** Pixels per unit. */
  readonly scale: number
}

function RowBars({ line, series, isStacked, x, y, scale }: RowBarsProps) {
  const space = ROW_HEIGHT * FILLED
  const thickness = isStacked ? Math.min(space, MAX_BAR) : space / series.length
  const start = isStacked ? y - thickness / 2 : y - space / 2
  const bars = isStacked
    ? stack(line, series)
    : series.map(({ name, color, read }) => ({ name, color, from: 0, to: read(line) ?? 0 }))
  return bars.map(({ name, color, from, to }, index) => (
    <rect
      key={name}
      x={x + from * scale}
      y={isStacked ? start : start + index * thickness}
      width={(to - from) * scale}
      height={thickness}
      fill={color}
    />
  ))
}

interface NameProps {
  readonly name: string
  readonly x: number
  readonly y: number
}

/** Draws a name left of its bar; the browser shows a shortened name in full in a tooltip. */
function Name({ name, x, y }: NameProps) {
  const lines = breakLabel(name)
  return (
    <text x={x} y={y} textAnchor="end">
      <title>{name}</title>
      {lines.map((line, index) => (
        <tspan key={line} x={x} dy={index === 0 ? `${0.35 - (lines.length - 1) * 0.55}em` : '1.1em'}>
          {line}
        </tspan>
      ))}
    </text>
  )
}

interface PickableProps extends Pick<ChartPanelProps, 'onPick'> {
  readonly line: Line
  readonly children: ReactNode
}

function Pickable({ line, onPick, children }: PickableProps) {
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the table below has a button for each line
    <g className="plot-bar" onClick={() => onPick(line)}>
      {children}
    </g>
  )
}

interface TooltipProps extends Pick<ChartPanelProps, 'series' | 'render'> {
  readonly line: Line
  readonly label: string
  readonly x: number
  readonly y: number
  readonly width: number
}

/** Shows a line's values next to `x`, in the half of the chart that has more space. */
function Tooltip({ line, label, series, render, x, y, width }: TooltipProps) {
  const side = x < width / 2 ? { left: x + 16 } : { right: width - x + 16 }
  return (
    <div className="plot-tooltip" style={{ ...side, top: y }}>
      <strong>
        <bdi>{label}</bdi>
      </strong>
      {series.map(({ name, color, read }) => {
        const value = read(line)
        return (
          <span key={name}>
            <span className="chart-key" style={{ background: color }} />
            {t(name)}
            <b>{value === null ? '–' : render(value)}</b>
          </span>
        )
      })}
    </div>
  )
}

interface Part extends Pick<Series, 'name' | 'color'> {
  readonly from: number
  readonly to: number
}

/** Returns the values of the series stacked on each other; omits zeros and missing values. */
function stack(line: Line, series: readonly Series[]): Part[] {
  let sum = 0
  const parts = series.map(({ name, color, read }) => {
    const from = sum
    sum += read(line) ?? 0
    return { name, color, from, to: sum }
  })
  return parts.filter(({ from, to }) => to > from)
}

/** Returns the largest value, or, if `isStacked`, the largest sum of one line's values. */
function maxOf({ lines, series }: ChartPanelProps, isStacked: boolean): number {
  const ofLine = (line: Line) => {
    const values = series.map(({ read }) => read(line) ?? 0)
    return isStacked ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values)
  }
  return lines.reduce((max, line) => Math.max(max, ofLine(line)), 0)
}

/** Connects the measured values; days without a measurement are gaps. */
function toPath(lines: readonly Line[], read: Series['read'], xOf: Scale['xOf'], yOf: Scale['yOf']): string {
  let isAfterGap = true
  return lines
    .map((line, index) => {
      const value = read(line)
      const command = isAfterGap ? 'M' : 'L'
      isAfterGap = value === null
      return value === null ? '' : `${command}${xOf(index).toFixed(1)} ${yOf(value).toFixed(1)}`
    })
    .join('')
}
