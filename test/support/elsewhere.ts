/** Where the pages of other people are: at another origin than the service's, and on another site. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Starts to listen on a free port; the origin of its pages. The service is at 127.0.0.1. */
export async function listenElsewhere(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://localhost:${(server.address() as AddressInfo).port}`
}
