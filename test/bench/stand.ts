/** Provides the shared setup of all benchmark rows: servers, keys and the extent of the measurements. */
import type { Server } from './processes.ts'
import type { Effort } from './rounds.ts'
import type { StreamPlan } from './upstream.ts'

/** Servers to start, keys for the requests, and the extent of the measurements. */
export interface Stand {
  /** Starts a new bare pass-through. */
  startBare(): Promise<Server>
  /** Starts the service on its existing data. */
  startOurs(): Promise<Server>
  /** Starts the service on an empty data directory, so that it prints its key. */
  startOursEmpty(): Promise<Server>
  /** Sets how the upstream answers streams from now on. */
  plan(plan: StreamPlan): Promise<void>
  readonly parentKey: string
  readonly agentKey: string
  /** The extent of a comparison of bare and ours. */
  readonly effort: Effort
  /** The size in bytes of the file to upload and download. */
  readonly fileBytes: number
  /** The number of interruptions of a real client's upload; 0 skips that row. */
  readonly interruptions: number
  /** A temporary folder, which is removed at the end. */
  readonly folder: string
  /** The number of runs of 2,000 slow streams, each on a new server. */
  readonly slowRounds: number
  /** The number of server starts. */
  readonly starts: number
}

/** The model of every request, which the upstream offers. */
export const model = 'bench-model'

/** The maximum duration of one turn in milliseconds. */
export const limitMs = 30_000

/** Starts both sides for the work, and stops them afterwards. */
export async function withBoth<T>(
  stand: Stand,
  work: (bare: Server, ours: Server) => Promise<T>,
): Promise<T> {
  const bare = await stand.startBare()
  try {
    const ours = await stand.startOurs()
    try {
      return await work(bare, ours)
    } finally {
      await ours.stop()
    }
  } finally {
    await bare.stop()
  }
}
