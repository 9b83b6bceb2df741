/** What Parley is measured against: the least that a pass-through of `node:http` and undici, and a file under it, can do. */
import { createReadStream, createWriteStream } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Dispatcher, Pool } from 'undici'

/** Hands the backend's answer on as it comes: status, content type, bytes, back-pressure. */
class Forward implements Dispatcher.DispatchHandler {
  private readonly response: ServerResponse
  private controller: Dispatcher.DispatchController | undefined

  constructor(response: ServerResponse) {
    this.response = response
    response.on('close', () => {
      if (!response.writableFinished) this.controller?.abort(new Error('The caller left.'))
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

/** One file: its bytes are a body as it came, with all that frames the file in it. */
async function keepFile(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'POST') await pipeline(request, createWriteStream(path))
  if (request.method === 'GET') return pipeline(createReadStream(path), response)
  response.end('{"id":"file"}')
}

if (import.meta.main) {
  const [, , upstream = '', folder = ''] = process.argv
  const pool = new Pool(upstream)
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/v1/files')) {
      keepFile(join(folder, 'bare-file'), request, response).catch(() => response.destroy())
    } else {
      forward(pool, request, response)
    }
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
    process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
  })
}
