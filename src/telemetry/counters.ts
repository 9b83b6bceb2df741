/** What is counted on the way of a request: plain numbers, so that counting costs an addition. */

/** What a number is of, by label. */
export type Labels = Readonly<Record<string, string>>

/** How the numbers of several processes become one. */
export type Aggregator = 'sum' | 'max' | 'min' | 'first'

/** One number as it is told. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** Where it is not the meter's own name. */
  readonly metricName?: string
}

/** A meter as it is told: what Prometheus calls a metric. */
export interface Reading {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly aggregator: Aggregator
  readonly values: readonly Sample[]
}

/** Something that can be told when it is asked for. */
export interface Meter {
  readonly name: string
  read(): Reading | Promise<Reading>
}

/** A number that is counted up, or up and down. */
export class Count {
  value = 0

  add(by = 1): void {
    this.value += by
  }
}

/** How many of the measured values lie below each bound, all of them, and their sum. */
export class Spread {
  readonly bounds: readonly number[]
  /** Of the values up to each bound that are above the one before; the last is of those above all. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    const { bounds, counts } = this
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at += 1
    counts[at] = (counts[at] as number) + 1
    this.sum += value
  }
}

/** What describes a meter. */
export interface MeterOptions {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

/** Numbers of one kind, one for each combination of labels; whoever counts often keeps the number it was handed. */
abstract class Family<C> implements Meter {
  readonly name: string
  protected readonly help: string
  private readonly labelNames: readonly string[]
  private readonly cells = new Map<string, { readonly labels: Labels; readonly cell: C }>()

  constructor({ name, help, labels = [] }: MeterOptions) {
    this.name = name
    this.help = help
    this.labelNames = labels
  }

  /** The number with these values of the labels, in their order; 0 when nobody has counted in it. */
  of(...values: readonly string[]): C {
    const key = values.join('\n')
    const known = this.cells.get(key)
    if (known !== undefined) return known.cell
    const labels = Object.fromEntries(this.labelNames.map((name, at) => [name, values[at] ?? '']))
    const cell = this.make()
    this.cells.set(key, { labels, cell })
    return cell
  }

  abstract read(): Reading
  protected abstract make(): C

  protected list(): Iterable<{ readonly labels: Labels; readonly cell: C }> {
    return this.cells.values()
  }
}

/** Numbers that only grow, or with `isGauge` ones that also fall. */
export class Counts extends Family<Count> {
  private readonly type: 'counter' | 'gauge'

  constructor(options: MeterOptions & { readonly isGauge?: true }) {
    super(options)
    this.type = options.isGauge ? 'gauge' : 'counter'
  }

  read(): Reading {
    const { name, help, type } = this
    const values = [...this.list()].map(({ labels, cell }) => ({ labels, value: cell.value }))
    return { name, help, type, aggregator: 'sum', values }
  }

  protected make(): Count {
    return new Count()
  }
}

/** Measured values, in buckets. */
export class Spreads extends Family<Spread> {
  private readonly bounds: readonly number[]

  constructor(options: MeterOptions & { readonly bounds: readonly number[] }) {
    super(options)
    this.bounds = options.bounds
  }

  read(): Reading {
    const { name, help } = this
    const values = [...this.list()].flatMap(({ labels, cell }) => toSamples(name, labels, cell))
    return { name, help, type: 'histogram', aggregator: 'sum', values }
  }

  protected make(): Spread {
    return new Spread(this.bounds)
  }
}

function toSamples(name: string, labels: Labels, { bounds, counts, sum }: Spread): Sample[] {
  let below = 0
  const buckets = counts.map((count, at) => {
    below += count
    return { labels: { ...labels, le: bounds[at] ?? '+Inf' }, value: below, metricName: `${name}_bucket` }
  })
  return [
    ...buckets,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: below, metricName: `${name}_count` },
  ]
}

/** A number that is looked up when it is asked for, with its labels. */
export type Looked = readonly [labels: Labels, value: number]

/** Numbers that nobody counts: they are looked up when they are asked for. */
export function lookUp(
  { name, help }: Pick<MeterOptions, 'name' | 'help'>,
  look: () => readonly Looked[] | Promise<readonly Looked[]>,
  { type = 'gauge', aggregator = 'sum' }: { type?: 'gauge' | 'counter'; aggregator?: Aggregator } = {},
): Meter {
  return {
    name,
    async read() {
      const values = (await look()).map(([labels, value]) => ({ labels, value }))
      return { name, help, type, aggregator, values }
    },
  }
}

/** Requests: from what is answered from memory to an upload of an hour. */
export const requestBounds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
]

/** Answers of models, whole or their first word. */
export const answerBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640]

/** Jobs: a picture takes a moment, a video minutes. */
export const jobBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800]

/** Pauses of the garbage collector. */
export const pauseBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
