/** Reads and parses `/metrics` like Prometheus. */

export interface ScrapedSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface ScrapedMetrics {
  /** Each metric's type by name. */
  readonly types: ReadonlyMap<string, string>
  readonly samples: readonly ScrapedSample[]
  /** Returns the sum of all samples that have this name and at least these labels. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
}

export async function scrape(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<ScrapedMetrics> {
  const response = await fetch(`${url}/metrics`, { headers })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}: ${text}`)
  return parseMetrics(text)
}

/** Parses Prometheus's text format. @throws Error for an invalid line. */
export function parseMetrics(text: string): ScrapedMetrics {
  const types = new Map<string, string>()
  const samples: ScrapedSample[] = []
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, name = '', type = ''] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? []
    if (name !== '') types.set(name, type)
    if (line.startsWith('#')) continue
    samples.push(parseSample(line))
  }
  return {
    types,
    samples,
    sum: (name, labels = {}) =>
      samples
        .filter((sample) => sample.name === name)
        .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
        .reduce((total, { value }) => total + value, 0),
  }
}

function parseSample(line: string): ScrapedSample {
  const [, name = '', all = '', value = ''] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? []
  if (name === '' || Number.isNaN(Number(value))) throw new Error(`not a sample: ${line}`)
  const labels = [...all.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', text = '']) => [
    label,
    text,
  ])
  return { name, labels: Object.fromEntries(labels), value: Number(value) }
}
