/** Makes servers listen on an origin and site other than the service's. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens on a free port; returns the origin, which uses `localhost` because services use 127.0.0.1. */
export async function listenOnOtherOrigin(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://localhost:${(server.address() as AddressInfo).port}`
}
