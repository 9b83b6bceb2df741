/** What the rows of the bench have to work with. */
import type { Server } from './processes.ts'
import type { Effort } from './rounds.ts'
import type { StreamPlan } from './upstream.ts'

/** Servers to start, keys to ask them with, and how long to go on. */
export interface Stand {
  /** Starts a fresh bare pass-through. */
  startBare(): Promise<Server>
  /** Starts the service afresh, on the data it has. */
  startOurs(): Promise<Server>
  /** Starts the service on an empty data directory; it prints its key. */
  startOursEmpty(): Promise<Server>
  /** Tells the upstream how to answer streams from now on. */
  plan(plan: StreamPlan): Promise<void>
  readonly parentKey: string
  readonly agentKey: string
  /** How long bare and ours take turns. */
  readonly effort: Effort
  /** The size of a file that goes in and out. */
  readonly fileBytes: number
  /** How often the upload of a real client is interrupted; with 0 there is none. */
  readonly interruptions: number
  /** For files of the bench's own; removed with it. */
  readonly folder: string
  /** How often 2,000 slow streams are run on a fresh server. */
  readonly slowRounds: number
  /** How often a server is started. */
  readonly starts: number
}

/** The model every request names; the upstream offers it. */
export const model = 'bench-model'

/** The most that one turn may take. */
export const limitMs = 30_000

/** Starts both sides for that work, and stops them after it. */
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
