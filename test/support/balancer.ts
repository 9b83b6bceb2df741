/**
 * Runs a minimal round-robin load balancer. It skips failed replicas, and retries requests that use GET or
 * HEAD or that have not been sent yet.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import { onTestFinished } from 'vitest'

/** Starts a balancer for these URLs and stops it when the test ends. */
export async function startBalancer(urls: readonly string[]): Promise<{ readonly url: string }> {
  const live = new Set(urls)
  let turn = 0

  function next(): string | undefined {
    const choice = [...live]
    return choice[turn++ % choice.length]
  }

  function pass(incoming: IncomingMessage, response: ServerResponse): void {
    const target = next()
    if (target === undefined) return void refuse(response, 503)
    const { method, url = '/', headers } = incoming
    const isSafe = method === 'GET' || method === 'HEAD'
    let [isSent, hasLeft] = [false, false]
    const outgoing = request(target + url, { method, headers, agent: false })
    outgoing.once('socket', (socket) =>
      socket.once('connect', () => {
        isSent = true
        // Connects before reading the body, so that another replica can receive the request if the connection
        // fails.
        if (isSafe) outgoing.end()
        else pipeline(incoming, outgoing, () => {})
      }),
    )
    outgoing.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      pipeline(answer, response, (error) => error && response.destroy())
    })
    outgoing.on('error', () => {
      if (hasLeft) return
      live.delete(target)
      if (response.headersSent) response.destroy()
      else if (!isSent || isSafe) pass(incoming, response)
      else refuse(response, 502)
    })
    response.once('close', () => {
      hasLeft = true
      outgoing.destroy()
    })
  }

  const server = createServer(pass).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, { Connection: 'close' }).end()
}
