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
  const { series, render } = props
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
            isAnimationActive={false}
          />
        ))}
      </BarChart>
    </ResponsiveContainer>
  )
}

const MAX_LETTERS = 18

function shorten(name: string): string {
  const letters = [...name]
  return letters.length > MAX_LETTERS ? `${letters.slice(0, MAX_LETTERS - 1).join('')}…` : name
}

function HorizontalBars(props: ChartPanelProps) {
  const { series, lines, render, shape } = props
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
          width={130}
          tickFormatter={shorten}
        />
        <Tooltip {...tooltip} formatter={toText(render)} />
        {series.map(({ name, color }) => (
          <Bar key={name} dataKey={name} {...stack} fill={color} maxBarSize={20} isAnimationActive={false} />
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
}
