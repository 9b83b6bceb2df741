/** Runs a minimal S3 server with one in-memory bucket and scripted faults. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import type { S3Config } from '../../src/config/config.ts'
import { eventually } from './process.ts'
import { type Answer, S3Contents, S3Error } from './s3-contents.ts'
import { nameOperation, type S3Operation } from './s3-operations.ts'
import { errorXml } from './s3-xml.ts'

export type { S3Operation }

export type Fault =
  /** An S3 error response. */
  | { readonly status: number; readonly code: string }
  /**
   * `hang`: no response; `reset`: a connection reset; `lose`: a connection reset after the call took effect.
   */
  | 'hang'
  | 'reset'
  | 'lose'
  /** The body ends or stalls after this number of bytes. */
  | { readonly cutAfterBytes: number }
  | { readonly stallAfterBytes: number }

export interface SeenCall {
  readonly operation: S3Operation
  /** The object key without the bucket. */
  readonly key: string
  readonly headers: IncomingMessage['headers']
  readonly response: ServerResponse
  /** Number of concurrent calls of this operation when this call arrived, including this call. */
  readonly atOnce: number
  /** True if the client disconnected before the response was complete. */
  isLeft: boolean
}

export const credentials = {
  accessKeyId: 'AKIATESTTESTTESTTEST',
  secretAccessKey: 'a-secret-that-no-log-may-hold',
  sessionToken: undefined,
} as const

export class S3Server extends S3Contents {
  readonly bucket = 'test-bucket'
  endpoint = ''
  readonly calls: SeenCall[] = []
  private readonly faults: { operation: S3Operation; fault: Fault; left: number }[] = []
  private callsLeft = Number.POSITIVE_INFINITY
  private readonly server: Server = createServer(
    (request, response) => void this.onRequest(request, response),
  )

  /** Starts a server and stops it when the test ends. */
  static async start(): Promise<S3Server> {
    const s3 = new S3Server()
    s3.server.listen(0, '127.0.0.1')
    await once(s3.server, 'listening')
    s3.endpoint = `http://127.0.0.1:${(s3.server.address() as AddressInfo).port}`
    onTestFinished(() => s3.stop())
    return s3
  }

  stop(): void {
    this.server.close().closeAllConnections()
  }

  get config(): S3Config {
    const { bucket, endpoint } = this
    return { bucket, endpoint, prefix: '', region: 'eu-test-1', forcePathStyle: true, credentials }
  }

  get environment(): Record<string, string> {
    return {
      S3_BUCKET: this.bucket,
      S3_ENDPOINT: this.endpoint,
      S3_REGION: 'eu-test-1',
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    }
  }

  /** Makes the next `times` calls of an operation fail; by default, all further calls. */
  fail(operation: S3Operation, fault: Fault, times = Number.POSITIVE_INFINITY): void {
    this.faults.push({ operation, fault, left: times })
  }

  /** Serves this many more calls and rejects all later ones, as if the client had been killed. */
  serveOnly(calls: number): void {
    this.callsLeft = calls
  }

  heal(): void {
    this.faults.length = 0
    this.callsLeft = Number.POSITIVE_INFINITY
  }

  count(operation: S3Operation): number {
    return this.calls.filter((call) => call.operation === operation).length
  }

  mostAtOnce(operation: S3Operation): number {
    return Math.max(...this.calls.filter((call) => call.operation === operation).map(({ atOnce }) => atOnce))
  }

  /** Waits until a slow client blocks the response to the operation's last call; returns whether it does. */
  async isStuck(operation: S3Operation): Promise<boolean> {
    const stuckBytes = () =>
      this.calls.findLast((call) => call.operation === operation)?.response.writableLength
    let before = stuckBytes()
    return eventually(async () => {
      const now = stuckBytes()
      const isSame = now === before && now !== undefined && now > 0
      before = now
      return isSame
    }, true)
  }

  /** Lists the keys of the objects that contain a text. */
  listKeysWith(text: string): string[] {
    return [...this.objects].flatMap(([key, { bytes }]) => (bytes.includes(text) ? [key] : []))
  }

  /** Lists the names of stored blobs without their prefix. */
  listBlobs(): string[] {
    return [...this.objects.keys()].flatMap((key) => /[^/]*-[^/]*$/.exec(key)?.[0] ?? [])
  }

  private async onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://s3')
    const [, bucket, ...path] = decodeURIComponent(url.pathname).split('/')
    const key = path.join('/')
    const operation = nameOperation(request.method, key, url.searchParams)
    const isUnderWay = (call: SeenCall) =>
      call.operation === operation && !call.response.writableEnded && !call.isLeft
    const atOnce = this.calls.filter(isUnderWay).length + 1
    const seen: SeenCall = { operation, key, headers: request.headers, response, atOnce, isLeft: false }
    this.calls.push(seen)
    response.on('close', () => {
      seen.isLeft = !response.writableFinished
    })
    const fault = this.takeFault(operation)
    const body = await buffer(request).catch(() => undefined)
    if (body === undefined || fault === 'hang') return
    if (fault === 'reset') return void request.socket.destroy()
    try {
      if (fault !== undefined && typeof fault === 'object' && 'status' in fault)
        throw new S3Error(fault.status, fault.code)
      if (this.callsLeft-- <= 0) throw new S3Error(403, 'AccessDenied')
      if (bucket !== this.bucket) throw new S3Error(404, 'NoSuchBucket')
      assertSigned(request.headers, body)
      const answer = this.answer(operation, { key, query: url.searchParams, headers: request.headers, body })
      if (fault === 'lose') return void request.socket.destroy()
      send(response, answer, fault)
    } catch (error) {
      if (!(error instanceof S3Error)) throw error
      const isBodiless = request.method === 'HEAD'
      send(response, { status: error.status, body: isBodiless ? '' : errorXml(error.code) }, undefined)
    }
  }

  private takeFault(operation: S3Operation): Fault | undefined {
    const found = this.faults.find((one) => one.operation === operation && one.left > 0)
    if (found !== undefined) found.left -= 1
    return found?.fault
  }
}

/** Throws if the access key id or the signed checksum of the body is wrong. */
function assertSigned(headers: IncomingMessage['headers'], body: Buffer): void {
  if (!headers.authorization?.includes(`Credential=${credentials.accessKeyId}/`))
    throw new S3Error(403, 'InvalidAccessKeyId')
  if (headers['x-amz-content-sha256'] !== createHash('sha256').update(body).digest('hex'))
    throw new S3Error(400, 'XAmzContentSHA256Mismatch')
}

function send(
  response: ServerResponse,
  { status, headers, body = '' }: Answer,
  fault: Fault | undefined,
): void {
  const bytes = Buffer.from(body)
  response.writeHead(status, { 'content-length': bytes.length, ...headers })
  if (typeof fault !== 'object' || 'status' in fault) return void response.end(bytes)
  if ('stallAfterBytes' in fault) return void response.write(bytes.subarray(0, fault.stallAfterBytes))
  response.write(bytes.subarray(0, fault.cutAfterBytes), () => response.socket?.destroy())
}
