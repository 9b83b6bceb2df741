/** Provides the test tools with version 2 of the MCP library, over HTTP without sessions or over stdio. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { callTool, listPage } from './mcp-tools.ts'

/** Creates an MCP server with the test tools. */
export function createModernServer(): Server {
  const server = new Server(
    { name: 'tests', version: '2' },
    { capabilities: { tools: { listChanged: true } } },
  )
  server.setRequestHandler('tools/list', ({ params }) => listPage(params?.cursor))
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
    callTool(params.name, params.arguments ?? {}, mcpReq.signal),
  )
  return server
}

/** Creates a handler for Node's HTTP server that serves the test tools. */
export function createModernHandler() {
  const handler = createMcpHandler(createModernServer)
  return {
    announce: () => handler.notify.toolsChanged(),
    async serve(request: IncomingMessage, response: ServerResponse, raw: string): Promise<void> {
      const leaving = new AbortController()
      response.on('close', () => leaving.abort())
      const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [
        name,
        String(value),
      ])
      const answer = await handler.fetch(
        new Request(`http://server${request.url}`, {
          method: request.method ?? 'GET',
          headers,
          signal: leaving.signal,
          ...(raw === '' ? {} : { body: raw }),
        }),
      )
      response.writeHead(answer.status, [...answer.headers].flat())
      for await (const chunk of answer.body ?? []) response.write(chunk)
      response.end()
    },
  }
}
