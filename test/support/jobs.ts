/** Starts services with conversion jobs, reads the jobs, and holds conversions until a test releases them. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Service } from '../../src/server/service.ts'
import { type Answer, startApp, type TestApp } from './app.ts'
import { makePath } from './conversion.ts'
import { createFakeClock } from './fake-clock.ts'
import { eventually, makeFolder } from './process.ts'
import { getProgram } from './programs.ts'
import type { Target } from './uploads.ts'

/** Creates a fake clock whose `wait` never resolves and rejects only when it is aborted. */
export function createManualClock() {
  const clock = createFakeClock(Math.floor(Date.now() / 1000))
  const wait = (_ms: number, signal?: AbortSignal) =>
    new Promise<void>((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  return { ...clock, wait }
}

export interface JobsOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly options?: Parameters<typeof startApp>[1]
}

/** Starts a service with a new data directory and a fake clock. */
export async function startJobs({ env = {}, options = {} }: JobsOptions = {}) {
  const clock = createManualClock()
  const dataDir = join(await makeFolder(), 'data')
  const app = await startApp({ PARLEY_DATA_DIR: dataDir, ...env }, { clock, ...options })
  /** Advances the clock and makes the service check for due jobs. */
  const advance = (seconds: number) => {
    clock.advance(seconds)
    app.service.deps.artifacts.processing.wake()
  }
  return { app, dataDir, clock, advance }
}

export const listJobs = ({ service }: { readonly service: Service }) =>
  service.deps.db.selectFrom('jobs').selectAll().orderBy('kind').execute()

export const getRow = ({ service }: { readonly service: Service }) =>
  service.deps.db.selectFrom('artifacts').selectAll().executeTakeFirstOrThrow()

/** Lists the work folders of running conversions. */
export const listWorkFolders = (dataDir: string) => readdir(join(dataDir, 'conversions', 'incoming'))

/** Waits until `ask` resolves to true. `what` names the condition in the error after a timeout. */
export async function waitUntil(ask: () => Promise<boolean>, what: string): Promise<void> {
  if (!(await eventually(ask, true))) throw new Error(`timed out waiting until ${what}`)
}

/**
 * Creates a folder for PATH with an ffmpeg that waits until `open` is called, and then runs the script
 * `before`.
 */
export async function makeGate(before = '') {
  const folder = await makeFolder()
  const [isOpen, started] = [join(folder, 'open'), join(folder, 'started')]
  const waits = `echo $$ >> ${started}\nwhile [ ! -e ${isOpen} ]; do [ -d ${folder} ] || exit 1; sleep 0.05; done`
  const ffmpeg = `${waits}\n${before}\nexec ${getProgram('ffmpeg')} "$@"`
  const path = await makePath(folder, { ffprobe: true, ffmpeg, setpriv: true })
  return { env: { PATH: path }, folder, open: () => writeFile(isOpen, '') }
}

/** Returns the number of started conversions; each runs ffmpeg twice, for the video and its poster. */
export async function countConversions({ folder }: { readonly folder: string }): Promise<number> {
  const text = await readFile(join(folder, 'started'), 'utf8').catch(() => '')
  return (text.split('\n').length - 1) / 2
}

export async function openArtifact(
  target: Target,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Pick<Answer, 'status' | 'headers'> & { bytes: Buffer }> {
  const all = { Authorization: `Bearer ${target.key}`, ...headers }
  const response = await target.fetch(`${target.url}/artifacts/${path}`, { headers: all })
  const bytes = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, bytes }
}

/** Reads an artifact's status stream until `last` returns true for a status; returns all statuses. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
export async function watchUntil(app: TestApp, id: string, last: (status: any) => boolean): Promise<any[]> {
  const leaving = new AbortController()
  const headers = { Authorization: `Bearer ${app.key}`, Accept: 'text/event-stream' }
  const { body } = await fetch(`${app.url}/artifacts/${id}/status`, { headers, signal: leaving.signal })
  const statuses: object[] = []
  let text = ''
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (text + part).split('\n\n')
    text = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: ')) statuses.push(JSON.parse(line.slice(6)))
    if (last(statuses.at(-1))) break
  }
  leaving.abort()
  return statuses
}
