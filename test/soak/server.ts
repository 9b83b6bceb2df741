/** The server of a soak: the service as it is, on the mock backend, with the probe in its process. */
import { once } from 'node:events'
import { join } from 'node:path'
import { type Server, startProcess, unreachedLimits } from '../bench/processes.ts'

/** What the probe tells. Memory is as it is right after a collection. */
export interface Sample {
  /** What the system counts for the process. */
  readonly residentMb: number
  /** What JavaScript holds: its heap, and what lies outside it. */
  readonly liveMb: number
  /** Of the event loop, since it was told to forget. */
  readonly latenessP99Ms: number
  readonly latenessMaxMs: number
  /** The most of it that the server's own work can have been: where others take the processor, the rest is theirs. */
  readonly ownLatenessP99Ms: number
}

/** What the probe is told. */
export type Word = 'sample' | 'forget lateness'

export interface SoakServer extends Server {
  readonly url: string
  sample(): Promise<Sample>
  forgetLateness(): void
}

/** Starts it on an empty data directory, and on an empty PostgreSQL database where one is named. */
export async function startSoakServer(dataDir: string, databaseUrl: string | undefined): Promise<SoakServer> {
  const probe = join(import.meta.dirname, 'probe.ts')
  const words = ['--expose-gc', '--import', probe, 'src/main.ts', 'serve']
  const settings = {
    ...{ PORT: '0', LOG_LEVEL: 'warn', PARLEY_DATA_DIR: dataDir },
    ...unreachedLimits,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
  }
  const server = await startProcess(process.execPath, words, settings, true)
  const say = (word: Word) => void server.child.send(word)
  return {
    ...server,
    url: `http://127.0.0.1:${server.port}`,
    async sample() {
      const told = once(server.child, 'message')
      say('sample')
      return (await told)[0] as Sample
    },
    forgetLateness: () => say('forget lateness'),
  }
}
