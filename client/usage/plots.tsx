/** Draws the charts in the theme's colors, with tooltips and without animation. */
import {
  Bar,
  BarChart,
  CartesianGrid,
  Line as Curve,
  LineChart,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts'
import type { Grouping } from '../search.ts'
import type { Line } from './use-usage.ts'
import { renderShortDay } from './use-usage.ts'

const HEIGHT = 200
const ROW_HEIGHT = 34
const axis = { stroke: 'var(--chart-axis)', fontSize: 12, tickLine: false } as const
/** Used until the actual width is known. */
const initialDimension = { width: 480, height: HEIGHT }
const tooltip = {
  contentStyle: {
    border: '1px solid var(--line-strong)',
    borderRadius: 8,
    background: 'var(--surface)',
    fontSize: 13,
  },
  itemStyle: { color: 'var(--mantine-color-text)' },
  isAnimationActive: false,
  cursor: { fill: 'var(--chart-cursor)', stroke: 'var(--chart-cursor)' },
} as const

/** Returns one point per line, with each series' value under the series' name. */
function toPoints({ lines, series }: ChartPanelProps) {
  return lines.map((line) => ({
    name: line.name,
    id: line.id,
    ...Object.fromEntries(series.map(({ name, read }) => [name, read(line)])),
  }))
}

const toText = (render: ChartPanelProps['render']) => (value: unknown) =>
  typeof value === 'number' ? render(value) : '–'

export function LinePlot(props: ChartPanelProps) {
  const { series, render } = props
  return (
    <ResponsiveContainer width="100%" height={HEIGHT} initialDimension={initialDimension}>
      <LineChart data={toPoints(props)} accessibilityLayer={false} margin={{ top: 8, right: 8 }}>
        <CartesianGrid vertical={false} stroke="var(--chart-grid)" />
        <XAxis dataKey="id" {...axis} tickFormatter={renderShortDay} minTickGap={32} />
        <YAxis {...axis} axisLine={false} tickFormatter={render} width={56} />
        <Tooltip
          {...tooltip}
          labelFormatter={(label) => renderShortDay(String(label))}
          formatter={toText(render)}
        />
        {series.map(({ name, color }) => (
          <Curve
            key={name}
            dataKey={name}
            stroke={color}
            strokeWidth={2}
            dot={{ r: 2.5, fill: color }}
            isAnimationActive={false}
          />
        ))}
      </LineChart>
    </ResponsiveContainer>
  )
}

/** Draws vertical bars for days, and horizontal bars for all other groupings, to leave space for names. */
export function BarPlot(props: ChartPanelProps) {
  return props.by === 'day' ? <VerticalBars {...props} /> : <HorizontalBars {...props} />
}

function VerticalBars(props: ChartPanelProps) {
  const { series, render, lines, onPick } = props
  return (
    <ResponsiveContainer width="100%" height={HEIGHT} initialDimension={initialDimension}>
      <BarChart data={toPoints(props)} accessibilityLayer={false} margin={{ top: 8, right: 8 }}>
        <CartesianGrid vertical={false} stroke="var(--chart-grid)" />
        <XAxis dataKey="id" {...axis} tickFormatter={renderShortDay} minTickGap={32} />
        <YAxis {...axis} axisLine={false} tickFormatter={render} allowDecimals={false} width={56} />
        <Tooltip
          {...tooltip}
          labelFormatter={(label) => renderShortDay(String(label))}
          formatter={toText(render)}
        />
        {series.map(({ name, color }) => (
          <Bar
            key={name}
            dataKey={name}
            stackId="all"
            fill={color}
            maxBarSize={36}
            cursor="pointer"
            onClick={(_, index) => pick(lines, index, onPick)}
            isAnimationActive={false}
          />
        ))}
      </BarChart>
    </ResponsiveContainer>
  )
}

function pick(lines: ChartPanelProps['lines'], index: number, onPick: ChartPanelProps['onPick']): void {
  const line = lines[index]
  if (line !== undefined) onPick(line)
}

/** Letters in one line of a label, and the number of its lines. */
const LABEL_LETTERS = 24
const LABEL_LINES = 2
const LABEL_WIDTH = 168

/** Breaks a name into lines, between words where possible; shortens only what exceeds the last line. */
function breakLabel(name: string): string[] {
  const lines: string[] = []
  let rest = [...name]
  while (rest.length > LABEL_LETTERS && lines.length < LABEL_LINES - 1) {
    const space = rest.lastIndexOf(' ', LABEL_LETTERS)
    const end = space > 0 ? space : LABEL_LETTERS
    lines.push(rest.slice(0, end).join(''))
    rest = rest.slice(space > 0 ? end + 1 : end)
  }
  const isLong = rest.length > LABEL_LETTERS
  return [...lines, isLong ? `${rest.slice(0, LABEL_LETTERS - 1).join('')}…` : rest.join('')]
}

interface TickProps {
  readonly x: number | string
  readonly y: number | string
  readonly payload: { readonly value: string }
}

/** Draws a name left of its bar; the browser shows a shortened name in full in a tooltip. */
function NameTick({ x, y, payload: { value } }: TickProps) {
  const lines = breakLabel(value)
  return (
    <text x={x} y={y} textAnchor="end" fontSize={12} fill="var(--chart-axis)">
      <title>{value}</title>
      {lines.map((line, index) => (
        <tspan key={line} x={x} dy={index === 0 ? `${0.35 - (lines.length - 1) * 0.55}em` : '1.1em'}>
          {line}
        </tspan>
      ))}
    </text>
  )
}

function HorizontalBars(props: ChartPanelProps) {
  const { series, lines, render, shape, onPick } = props
  const height = 48 + Math.max(lines.length, 2) * ROW_HEIGHT
  const stack = shape === 'bars' ? { stackId: 'all' } : {}
  return (
    <ResponsiveContainer width="100%" height={height} initialDimension={{ ...initialDimension, height }}>
      <BarChart
        data={toPoints(props)}
        layout="vertical"
        accessibilityLayer={false}
        margin={{ top: 8, right: 16 }}
      >
        <CartesianGrid horizontal={false} stroke="var(--chart-grid)" />
        <XAxis type="number" {...axis} tickFormatter={render} allowDecimals={false} />
        <YAxis
          type="category"
          dataKey="name"
          {...axis}
          axisLine={false}
          width={LABEL_WIDTH}
          tick={NameTick}
        />
        <Tooltip {...tooltip} formatter={toText(render)} />
        {series.map(({ name, color }) => (
          <Bar
            key={name}
            dataKey={name}
            {...stack}
            fill={color}
            maxBarSize={20}
            isAnimationActive={false}
            cursor="pointer"
            onClick={(_, index) => pick(lines, index, onPick)}
          />
        ))}
      </BarChart>
    </ResponsiveContainer>
  )
}

export interface Series {
  readonly name: string
  /** A CSS color. */
  readonly color: string
  /** Returns null if there is no measurement. */
  readonly read: (line: Line) => number | null
}

export interface ChartPanelProps {
  readonly title: string
  readonly by: Grouping
  readonly lines: readonly Line[]
  readonly series: readonly Series[]
  /** `lines` is only for days, because lines between agents, models or keys would be meaningless. */
  readonly shape: 'bars' | 'lines'
  readonly render: (value: number) => string
  /** Called when the user clicks a bar. */
  readonly onPick: (line: Line) => void
}
