/**
 * Serves MCP over streamable HTTP. `node test/support/mcp-http-server.ts [--port N] [--modern] [--extra NAME]`
 * prints `listening <port>` and serves the path `/mcp`. By default, it uses version 1 of the MCP library, with
 * sessions. With `--modern`, it uses version 2, without sessions. `--extra` adds a tool.
 *
 *   GET /__seen             returns calls, cancellations, Authorization headers, and opened and closed sessions
 *   POST /__add?name=N      adds a tool and notifies the clients
 *   POST /__forget          discards all sessions
 *   /moved?to=URL           redirects to the URL with status 307
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema,
  isInitializeRequest,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { createModernHandler } from './mcp-modern.ts'
import { callTool, listPage, seen, tools } from './mcp-tools.ts'

const { values: settings } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    modern: { type: 'boolean', default: false },
    extra: { type: 'string' },
  },
})

interface Session {
  readonly server: Server
  readonly transport: StreamableHTTPServerTransport
}

const sessions = new Map<string, Session>()
const http = { authorizations: [] as (string | undefined)[], begun: 0, ended: 0, moved: 0 }
const modern = settings.modern ? createModernHandler() : undefined

async function beginSession(): Promise<Session> {
  const server = new Server(
    { name: 'tests', version: '1' },
    { capabilities: { tools: { listChanged: true } } },
  )
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => listPage(params?.cursor))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) =>
    callTool(params.name, params.arguments ?? {}, signal),
  )
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, session),
    onsessionclosed: () => void http.ended++,
  })
  const session = { server, transport }
  http.begun++
  await server.connect(transport)
  return session
}

async function serveMcp(request: IncomingMessage, response: ServerResponse, raw: string): Promise<void> {
  http.authorizations.push(request.headers.authorization)
  if (modern !== undefined) return modern.serve(request, response, raw)
  const body = raw === '' ? undefined : JSON.parse(raw)
  const id = request.headers['mcp-session-id']
  const session = isInitializeRequest(body) ? await beginSession() : sessions.get(String(id))
  if (session !== undefined) return session.transport.handleRequest(request, response, body)
  const error = { code: -32001, message: 'Session not found' }
  response.writeHead(404, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }))
}

async function addTool(name: string): Promise<void> {
  tools[name] = { inputSchema: { type: 'object' }, run: () => ({ content: [{ type: 'text', text: name }] }) }
  modern?.announce()
  await Promise.all([...sessions.values()].map(({ server }) => server.sendToolListChanged()))
}

async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let raw = ''
  for await (const read of request.setEncoding('utf8')) raw += read
  const url = new URL(request.url ?? '/', 'http://server')
  switch (url.pathname) {
    case '/mcp':
      return serveMcp(request, response, raw)
    case '/moved':
      http.moved++
      response.writeHead(307, { location: url.searchParams.get('to') ?? '/mcp' }).end()
      return
    case '/__add':
      await addTool(url.searchParams.get('name') ?? '')
      response.end('{}')
      return
    case '/__forget':
      sessions.clear()
      response.end('{}')
      return
    case '/__seen':
      response.end(JSON.stringify({ ...seen, ...http }))
      return
    default:
      response.writeHead(404).end()
  }
}

if (settings.extra !== undefined) await addTool(settings.extra)

const server = createServer((request, response) => {
  onRequest(request, response).catch((error) => {
    process.stderr.write(`${error.stack}\n`)
    response.destroy()
  })
})
server.listen(Number(settings.port), '127.0.0.1', () => {
  process.stdout.write(`listening ${(server.address() as AddressInfo).port}\n`)
})
// Exits when the parent process closes the IPC channel.
process.once('disconnect', () => process.exit())
