/** Starts the soak test's server: the service with the mock provider and the probe in its process. */
import { once } from 'node:events'
import { join } from 'node:path'
import { type Server, startProcess, unreachedLimits } from '../bench/processes.ts'

/** The probe's report; memory is measured immediately after a garbage collection. */
export interface Sample {
  readonly residentMb: number
  /** JavaScript's heap and external memory. */
  readonly liveMb: number
  /** The 99th percentile of the event loop lag since the last reset. */
  readonly lagP99Ms: number
  readonly lagMaxMs: number
  /** The part of the lag that the server's own work can have caused. */
  readonly ownLagP99Ms: number
}

export type ProbeCommand = 'sample' | 'reset lag'

export interface SoakServer extends Server {
  readonly url: string
  sample(): Promise<Sample>
  resetLag(): void
}

/** Starts the server with an empty data directory, and with PostgreSQL if a URL is given. */
export async function startSoakServer(dataDir: string, databaseUrl: string | undefined): Promise<SoakServer> {
  const probe = join(import.meta.dirname, 'probe.ts')
  const words = ['--expose-gc', '--import', probe, 'src/main.ts', 'serve']
  const settings = {
    ...{ PORT: '0', LOG_LEVEL: 'warn', PARLEY_DATA_DIR: dataDir },
    ...unreachedLimits,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
  }
  const server = await startProcess(process.execPath, words, settings, true)
  const send = (command: ProbeCommand) => void server.child.send(command)
  return {
    ...server,
    url: `http://127.0.0.1:${server.port}`,
    async sample() {
      const answer = once(server.child, 'message')
      send('sample')
      return (await answer)[0] as Sample
    },
    resetLag: () => send('reset lag'),
  }
}
