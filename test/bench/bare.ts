/** Runs the benchmark's baseline: a minimal proxy with `node:http` and undici, and minimal file storage. */
import { closeSync, createReadStream, createWriteStream, fdatasync, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { type Dispatcher, Pool } from 'undici'

/** Streams the provider's response to the client and respects backpressure. */
class Forward implements Dispatcher.DispatchHandler {
  private readonly response: ServerResponse
  private controller: Dispatcher.DispatchController | undefined

  constructor(response: ServerResponse) {
    this.response = response
    response.on('close', () => {
      if (!response.writableFinished) this.controller?.abort(new Error('The client disconnected.'))
    })
    response.on('drain', () => this.controller?.resume())
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingMessage['headers'],
  ): void {
    this.response.writeHead(status, { 'content-type': headers['content-type'] ?? 'application/octet-stream' })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.response.write(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    this.response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, _error: Error): void {
    if (this.response.headersSent) this.response.destroy()
    else this.response.writeHead(502).end()
  }
}

function forward(pool: Pool, request: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const { authorization, 'content-type': contentType } = request.headers
    pool.dispatch(
      {
        path: request.url ?? '/',
        method: request.method as Dispatcher.HttpMethod,
        headers: { authorization, 'content-type': contentType },
        body: parts.length === 0 ? null : Buffer.concat(parts),
      },
      new Forward(response),
    )
  })
}

/** Stores or serves one file; the multipart framing is stored with it. */
async function keepFile(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'POST') await pipeline(request, createWriteStream(path))
  if (request.method === 'GET') return pipeline(createReadStream(path), response)
  response.end('{"id":"file"}')
}

let uploads = 0

/** Stores uploads without validation, and syncs after every 8 MiB, as Parley does, and at the end. */
async function keepUpload(folder: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'POST') {
    const location = `/upload/${++uploads}`
    response.writeHead(201, { location, 'x-artifact-id': String(uploads), 'content-length': 0 }).end()
    return
  }
  const path = join(folder, `bare-upload-${request.url?.split('/')[2]}`)
  if (request.method === 'PATCH') await writeSynced(path, request)
  else if (request.method === 'DELETE') await rm(path, { force: true })
  response.writeHead(204).end()
}

/** Number of received bytes after which a sync starts. */
const syncEveryBytes = 8 * 1024 ** 2

async function writeSynced(path: string, request: IncomingMessage): Promise<void> {
  const fd = openSync(path, 'w')
  let unsyncedBytes = 0
  let syncing: Promise<void> | undefined
  request.on('data', (piece: Buffer) => {
    unsyncedBytes += piece.length
    if (unsyncedBytes < syncEveryBytes || syncing !== undefined) return
    unsyncedBytes = 0
    syncing = sync(fd).finally(() => {
      syncing = undefined
    })
  })
  try {
    // Uses Parley's buffer size; with a smaller buffer, each chunk would be written separately.
    await pipeline(request, createWriteStream(path, { fd, autoClose: false, highWaterMark: 1024 ** 2 }))
    await syncing
    await sync(fd)
  } finally {
    closeSync(fd)
  }
}

const sync = promisify(fdatasync)

if (import.meta.main) {
  const [, , upstream = '', folder = ''] = process.argv
  const pool = new Pool(upstream)
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/v1/files')) {
      keepFile(join(folder, 'bare-file'), request, response).catch(() => response.destroy())
    } else if (request.url?.startsWith('/upload')) {
      keepUpload(folder, request, response).catch(() => response.destroy())
    } else if (request.url?.startsWith('/artifacts')) {
      response.setHeader('content-type', 'application/json')
      response.end('{"artifactId":"bare","state":"uploading"}')
    } else {
      forward(pool, request, response)
    }
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
    process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
  })
}
