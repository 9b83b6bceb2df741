/** Measures an upload in one large request, and one by tus-js-client with lost connections. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Cut, CuttingProxy } from '../support/cutting-proxy.ts'
import { createRandom } from '../support/random.ts'
import { createClientUpload } from '../support/tus-client.ts'
import { BenchFailure, type Sink } from './connection.ts'
import { runLoops } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { compare, type Outcome } from './rounds.ts'
import { type BenchSetup, withBoth } from './setup.ts'
import { block, ContentSink, MIB, toHead } from './transfers.ts'

/** The maximum duration of one upload, in milliseconds. */
const limitMs = 180_000

/** Checks the status of a response without a body. */
export class StatusSink implements Sink {
  private readonly wanted: number

  constructor(wanted: number) {
    this.wanted = wanted
  }

  onPayload(): void {}

  onEnd(status: number): void {
    if (status !== this.wanted) throw new BenchFailure(`Status ${status} instead of ${this.wanted}.`)
  }
}

export interface Begun {
  readonly path: string
  readonly id: string
}

/** Creates an upload that declares one more byte than `sizeBytes`, so that it never completes. */
export async function beginUpload({ port }: Server, key: string, sizeBytes: number): Promise<Begun> {
  const { status, headers } = await fetch(`http://127.0.0.1:${port}/upload`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'tus-resumable': '1.0.0',
      'upload-length': String(sizeBytes + 1),
      'upload-metadata': `filename ${btoa('bench.mp4')}`,
    },
  })
  if (status !== 201) throw new BenchFailure(`The upload was not created, status ${status}.`)
  return { path: headers.get('location') ?? '', id: headers.get('x-artifact-id') ?? '' }
}

/** Builds the request line and headers of a PATCH with `sizeBytes` bytes. */
export function toPatchHead({ path }: Begun, key: string, sizeBytes: number): Buffer {
  const type = 'content-type: application/offset+octet-stream\r\n'
  const length = `upload-offset: 0\r\ncontent-length: ${sizeBytes}\r\n`
  return toHead('PATCH', path, key, `tus-resumable: 1.0.0\r\n${type}${length}`)
}

export async function removeUpload({ port }: Server, key: string, { path }: Begun): Promise<void> {
  const request = toHead('DELETE', path, key, 'tus-resumable: 1.0.0\r\n')
  await runLoops({ port, connections: 1, limitMs }, (connection) =>
    connection.exchange(request, new StatusSink(204)),
  )
}

function* toPatch(begun: Begun, key: string, sizeBytes: number): Iterable<Buffer> {
  yield toPatchHead(begun, key, sizeBytes)
  for (let left = sizeBytes; left > 0; left -= MIB) yield block
}

interface Turn {
  readonly elapsedMs: number
  readonly highestMb: number
}

/** Compares uploads in one request to both servers, and measures an interrupted upload to Parley. */
export async function measureUploads(setup: BenchSetup): Promise<Row[]> {
  const { fileBytes, effort } = setup
  const rounds = { ...effort, warmUps: 1, rounds: 5, limitMs: 2 * effort.limitMs }
  return withBoth(setup, async (bare, ours) => {
    const contestants = [{ server: bare }, { server: ours }]
    const outcomes = await compare(contestants, rounds, ({ server }) => sendWhole(setup, server))
    const interrupted = setup.interruptions === 0 ? [] : [await measureInterrupted(setup, ours)]
    const [bareOnes, oursOnes] = outcomes as [Outcome<Turn>, Outcome<Turn>]
    const rates = ({ results }: Outcome<Turn>) =>
      results.map(({ elapsedMs }) => fileBytes / MIB / (elapsedMs / 1e3))
    const costs = ({ cpuNs }: Outcome<Turn>) => cpuNs.map((ns) => ns / 1e6 / (fileBytes / (100 * MIB)))
    const memory = ({ results }: Outcome<Turn>) => results.map(({ highestMb }) => highestMb)
    const name = `${fileBytes / MIB} MiB in one PATCH`
    return [
      toRow(`${name}: MiB/s`, rates(bareOnes), rates(oursOnes), { leastRatio: 0.85 }),
      toRow(`${name}: CPU ms per 100 MiB`, costs(bareOnes), costs(oursOnes), undefined),
      toRow(`${name}: resident memory, MB`, memory(bareOnes), memory(oursOnes), { value: 200 }),
      ...interrupted,
    ]
  })
}

async function sendWhole({ fileBytes, parentKey: key }: BenchSetup, server: Server): Promise<Turn> {
  const begun = await beginUpload(server, key, fileBytes)
  server.highestKb()
  const elapsedMs = await runLoops({ port: server.port, connections: 1, limitMs }, (connection) =>
    connection.exchange(toPatch(begun, key, fileBytes), new StatusSink(204)),
  )
  const highestMb = server.highestKb() / 1_024
  await removeUpload(server, key, begun)
  return { elapsedMs, highestMb }
}

/** Uploads with tus-js-client through a proxy that breaks connections, with a checksum of the content. */
async function measureInterrupted(
  { fileBytes, parentKey, ...setup }: BenchSetup,
  server: Server,
): Promise<Row> {
  const path = join(setup.folder, 'interrupted.bin')
  const checksum = await writeBlocks(path, fileBytes)
  const random = createRandom(20)
  const stretch = fileBytes / (setup.interruptions + 1)
  const points = Array.from({ length: setup.interruptions }, (_, index) => (index + random()) * stretch + 1)
  const ways: readonly Cut[] = ['reset', 'end']
  const proxy = await CuttingProxy.open(`http://127.0.0.1:${server.port}`, {
    points,
    onPoint: (index) => ways[index % ways.length] ?? 'end',
  })
  let id = ''
  const { upload, done } = createClientUpload(
    createReadStream(path),
    { url: proxy.url, key: parentKey },
    {
      metadata: { filename: 'bench.mp4', checksum: `sha256:${checksum}` },
      onAfterResponse: (_request, response) => {
        id ||= response.getHeader('X-Artifact-Id') ?? ''
      },
    },
  )
  const startedMs = performance.now()
  upload.start()
  await done.finally(() => proxy.close())
  const seconds = (performance.now() - startedMs) / 1e3
  if (proxy.passedPoints !== setup.interruptions)
    throw new BenchFailure(`Only ${proxy.passedPoints} interruptions took place.`)
  await assertArrived(server, parentKey, id, fileBytes)
  const name = `${fileBytes / MIB} MiB by tus-js-client, ${setup.interruptions} interruptions: s`
  return toRow(name, [Number.NaN], [seconds], undefined)
}

/** Writes a file to upload; returns its SHA-256 digest in hexadecimal. */
async function writeBlocks(path: string, sizeBytes: number): Promise<string> {
  const hash = createHash('sha256')
  await using file = await open(path, 'w')
  for (let left = sizeBytes; left > 0; left -= MIB) {
    hash.update(block)
    await file.write(block)
  }
  return hash.digest('hex')
}

async function assertArrived({ port }: Server, key: string, id: string, sizeBytes: number): Promise<void> {
  const endMs = performance.now() + limitMs
  const headers = { authorization: `Bearer ${key}` }
  for (let state = ''; state !== 'ready'; await sleep(100)) {
    const answer = await fetch(`http://127.0.0.1:${port}/artifacts/${id}/status`, { headers })
    state = ((await answer.json()) as { state: string }).state
    if (performance.now() > endMs) throw new BenchFailure(`The upload is still ${state}.`)
  }
  await runLoops({ port, connections: 1, limitMs }, (connection) =>
    connection.exchange(toHead('GET', `/artifacts/${id}`, key), new ContentSink(sizeBytes)),
  )
}
