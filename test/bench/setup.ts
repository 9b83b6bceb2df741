/** Defines the shared setup of all benchmark rows: servers, keys and the extent of the measurements. */
import type { Server } from './processes.ts'
import type { Effort } from './rounds.ts'
import type { StreamPlan } from './upstream.ts'

export interface BenchSetup {
  startBare(): Promise<Server>
  /** Starts Parley with the existing data directory. */
  startOurs(): Promise<Server>
  /** Starts Parley with an empty data directory, so that it prints a key, and with additional variables. */
  startOursEmpty(more?: Readonly<Record<string, string>>): Promise<Server>
  /** Sets how the fake model provider sends its streams. */
  plan(plan: StreamPlan): Promise<void>
  readonly parentKey: string
  readonly agentKey: string
  readonly effort: Effort
  /** The size of the uploaded file in bytes. */
  readonly fileBytes: number
  /** The number of interruptions of the upload with tus-js-client; 0 skips that row. */
  readonly interruptions: number
  /** A temporary folder, which the benchmark removes when it ends. */
  readonly folder: string
  /** The number of measurements with 2,000 slow streams. */
  readonly slowRounds: number
  readonly starts: number
}

/** The model id in all requests. */
export const model = 'bench-model'

/** The maximum duration of one turn, in milliseconds. */
export const limitMs = 30_000

/** Runs `work` with the baseline and with Parley, and stops both afterwards. */
export async function withBoth<T>(
  setup: BenchSetup,
  work: (bare: Server, ours: Server) => Promise<T>,
): Promise<T> {
  const bare = await setup.startBare()
  try {
    const ours = await setup.startOurs()
    try {
      return await work(bare, ours)
    } finally {
      await ours.stop()
    }
  } finally {
    await bare.stop()
  }
}
