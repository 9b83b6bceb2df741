/** How long requests take, by what they asked for and how they were answered. */
import { requestBounds } from './bounds.ts'
import { type Meter, type Spread, Spreads } from './meters.ts'
import { OTHER } from './model-meters.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', OTHER]
const methodIndexes = new Map(methods.map((method, index) => [method, index]))
/** The first is of those who left before they were answered. */
const statuses = ['left', '1xx', '2xx', '3xx', '4xx', '5xx']

/** The times of one operation. */
export class RequestMeter {
  /** As the table of operations calls it. */
  readonly name: string
  private readonly times: Spreads
  private readonly cells: (Spread | undefined)[] = []

  constructor(name: string, times: Spreads) {
    this.name = name
    this.times = times
  }

  /** A request has ended; without a status its caller left before there was one. */
  ended(method: string, status: number | undefined, durationMs: number): void {
    const kind = status === undefined ? 0 : Math.min(Math.floor(status / 100), statuses.length - 1)
    const methodIndex = methodIndexes.get(method) ?? methods.length - 1
    const at = methodIndex * statuses.length + kind
    const cell =
      this.cells[at] ?? this.times.of(this.name, methods[methodIndex] as string, statuses[kind] as string)
    this.cells[at] = cell
    cell.observe(durationMs / 1000)
  }
}

/** The times of all operations. Whoever asks for one names it as the table of operations does, never as a caller wrote it. */
export class RequestMeters {
  readonly meters: readonly Meter[]
  /** Of whatever is no operation: pages, health, unknown paths. */
  readonly other: RequestMeter
  private readonly times = new Spreads({
    name: 'parley_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labels: ['operation', 'method', 'status'],
    bounds: requestBounds,
  })
  private readonly known = new Map<string, RequestMeter>()

  constructor() {
    this.meters = [this.times]
    this.other = this.of(OTHER)
  }

  of(operation: string): RequestMeter {
    const known = this.known.get(operation)
    if (known !== undefined) return known
    const made = new RequestMeter(operation, this.times)
    this.known.set(operation, made)
    return made
  }
}
