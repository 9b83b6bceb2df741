/** Measures the upload and download of a large file, and verifies every downloaded byte. */
import { BenchFailure, type Sink } from './connection.ts'
import { runLoops } from './load.ts'
import type { Server } from './processes.ts'
import { type Row, toRow } from './report.ts'
import { compare, type Outcome } from './rounds.ts'
import { type BenchSetup, withBoth } from './setup.ts'

export const MIB = 1024 ** 2
/** The maximum duration of one transfer, in milliseconds. */
const limitMs = 120_000
/** The 1 MiB block of which the uploaded files consist. */
export const block = Buffer.from(
  Uint32Array.from({ length: MIB / 4 }, (_, place) => 2_654_435_761 * place).buffer,
)
const mark = block.subarray(0, 64)

const boundary = 'bench5Zk2TqWm8LrYx0VbNc4'
const formHead = Buffer.from(
  `--${boundary}\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n` +
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="bench.bin"\r\n\r\n`,
)
const formEnd = Buffer.from(`\r\n--${boundary}--\r\n`)

/** Parses the response to an upload or a deletion. */
class FileSink implements Sink {
  private text = ''
  id = ''

  onPayload(piece: Buffer): void {
    this.text += piece.toString()
  }

  onEnd(status: number): void {
    this.id = status === 200 ? (JSON.parse(this.text) as { id: string }).id : ''
    if (this.id === '')
      throw new BenchFailure(`No file was returned, status ${status}: ${this.text.slice(0, 200)}`)
  }
}

/** Compares the downloaded bytes with the sent ones, without the framing that the baseline stores. */
export class ContentSink implements Sink {
  private readonly sizeBytes: number
  private hasBegun = false
  private receivedBytes = 0

  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes
  }

  onPayload(piece: Buffer): void {
    let at = this.hasBegun ? 0 : piece.indexOf(mark)
    this.hasBegun = true
    if (at < 0) throw new BenchFailure('The file does not begin with the bytes that were sent.')
    const end = Math.min(piece.length, at + this.sizeBytes - this.receivedBytes)
    while (at < end) {
      const from = this.receivedBytes % MIB
      const length = Math.min(end - at, MIB - from)
      if (piece.compare(block, from, from + length, at, at + length) !== 0)
        throw new BenchFailure(`The file differs from what was sent after ${this.receivedBytes} bytes.`)
      at += length
      this.receivedBytes += length
    }
  }

  onEnd(status: number): void {
    if (status === 200 && this.receivedBytes === this.sizeBytes) return
    throw new BenchFailure(`Status ${status}, ${this.receivedBytes} of ${this.sizeBytes} bytes.`)
  }
}

export function toHead(method: string, path: string, key: string, more = ''): Buffer {
  const head = `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n`
  return Buffer.from(`${head}${more}\r\n`)
}

function* toUpload(key: string, sizeBytes: number): Iterable<Buffer> {
  const length = formHead.length + sizeBytes + formEnd.length
  const type = `multipart/form-data; boundary=${boundary}`
  yield toHead('POST', '/v1/files', key, `content-type: ${type}\r\ncontent-length: ${length}\r\n`)
  yield formHead
  for (let left = sizeBytes; left > 0; left -= MIB) yield block
  yield formEnd
}

/** A server, its memory when idle, and the id of the last file that was uploaded to it. */
interface StoredFile {
  readonly server: Server
  readonly idleKb: number
  readonly fileId: string
}

/** Compares uploads and downloads of the baseline and of Parley. */
export function measureFiles(setup: BenchSetup): Promise<Row[]> {
  const { fileBytes, parentKey: key } = setup
  return withBoth(setup, async (bare, ours) => {
    const sides = [await prepare(bare, key), await prepare(ours, key)]
    const into = await measureWay(setup, sides, 'into', async ({ server }) =>
      removeFile(server, key, await putFile(server, key, fileBytes)),
    )
    const filled = await Promise.all(
      sides.map(async (side) => ({ ...side, fileId: await putFile(side.server, key, fileBytes) })),
    )
    const outOf = await measureWay(setup, filled, 'out of', ({ server, fileId }) =>
      readFile(server, key, fileId, fileBytes),
    )
    return [...into, ...outOf]
  })
}

/** Transfers a small file, so that the server has loaded its code before the measurement. */
async function prepare(server: Server, key: string): Promise<StoredFile> {
  const fileId = await putFile(server, key, MIB)
  await readFile(server, key, fileId, MIB)
  await removeFile(server, key, fileId)
  return { server, fileId, idleKb: server.residentKb() }
}

async function measureWay(
  { fileBytes, effort }: BenchSetup,
  sides: readonly StoredFile[],
  way: string,
  move: (side: StoredFile) => Promise<void>,
): Promise<Row[]> {
  const outcomes = await compare(sides, { ...effort, warmUps: 0, rounds: 3 }, async (side) => {
    side.server.highestKb()
    await move(side)
    return (side.server.highestKb() - side.idleKb) / 1_024
  })
  const hundreds = fileBytes / (100 * MIB)
  const costs = ({ cpuNs }: Outcome<number>) => cpuNs.map((ns) => ns / 1e6 / hundreds)
  const [bare, ours] = outcomes as [Outcome<number>, Outcome<number>]
  const name = `${fileBytes / MIB} MiB ${way} a file`
  return [
    toRow(`${name}: CPU ms per 100 MiB`, costs(bare), costs(ours), undefined),
    toRow(`${name}: extra memory, MB`, bare.results, ours.results, { value: 64 }),
  ]
}

async function putFile({ port }: Server, key: string, sizeBytes: number): Promise<string> {
  const sink = new FileSink()
  await exchange(port, toUpload(key, sizeBytes), sink)
  return sink.id
}

function readFile({ port }: Server, key: string, id: string, sizeBytes: number): Promise<void> {
  return exchange(port, [toHead('GET', `/v1/files/${id}/content`, key)], new ContentSink(sizeBytes))
}

function removeFile({ port }: Server, key: string, id: string): Promise<void> {
  return exchange(port, [toHead('DELETE', `/v1/files/${id}`, key)], new FileSink())
}

async function exchange(port: number, request: Iterable<Buffer>, sink: Sink): Promise<void> {
  await runLoops({ port, connections: 1, limitMs }, (connection) => connection.exchange(request, sink))
}
