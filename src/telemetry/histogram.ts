/** Provides a histogram that resolves its labels once instead of at each observation. */
import { Histogram, type MetricObjectWithValues, type MetricValueWithName } from 'prom-client'

/** Counts the observed values of one combination of labels. */
export class Distribution {
  readonly labels: Readonly<Record<string, string>>
  private readonly bounds: readonly number[]
  /** The number of values in each bucket; the last bucket has no upper bound. */
  private readonly counts: number[]
  private sum = 0

  constructor(labels: Readonly<Record<string, string>>, bounds: readonly number[]) {
    this.labels = labels
    this.bounds = bounds
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    const { bounds, counts } = this
    let index = 0
    while (index < bounds.length && value > (bounds[index] as number)) index += 1
    counts[index] = (counts[index] as number) + 1
    this.sum += value
  }

  /** Renders the cumulative buckets, the sum and the count, as prom-client does. */
  samples(name: string): MetricValueWithName<string>[] {
    const { labels, bounds, counts, sum } = this
    let total = 0
    const buckets = counts.map((count, index) => {
      total += count
      return {
        labels: { le: bounds[index] ?? '+Inf', ...labels },
        value: total,
        metricName: `${name}_bucket`,
      }
    })
    return [
      ...buckets,
      { labels, value: sum, metricName: `${name}_sum` },
      { labels, value: total, metricName: `${name}_count` },
    ]
  }
}

/** Avoids prom-client's label lookup for each observation, which costs CPU time. */
export class LabelledHistogram extends Histogram<string> {
  private readonly bounds: readonly number[]
  private readonly distributions: Distribution[] = []

  constructor(options: ConstructorParameters<typeof Histogram<string>>[0] & { readonly buckets: number[] }) {
    super(options)
    this.bounds = options.buckets
  }

  /** Adds a combination of labels; call it once for each. */
  add(labels: Readonly<Record<string, string>>): Distribution {
    const added = new Distribution(labels, this.bounds)
    this.distributions.push(added)
    return added
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    const described = await super.get()
    return { ...described, values: this.distributions.flatMap((each) => each.samples(described.name)) }
  }
}
