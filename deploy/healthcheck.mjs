/** Ends with 0 when the server on this machine's PORT answers /healthz, with 1 when it does not: the HEALTHCHECK of the image. */
import { get } from 'node:http'

const port = process.env.PORT || '3000'
// A server that answers to certain names only does so to its own probe as well.
const [host = ''] = (process.env.PARLEY_ALLOWED_HOSTS ?? '').split(',')
const headers = { Host: host.trim() || `127.0.0.1:${port}`, Connection: 'close' }

const asking = get(
  { host: '127.0.0.1', port, path: '/healthz', headers, timeout: 3_000 },
  ({ statusCode }) => {
    process.exit(statusCode === 200 ? 0 : 1)
  },
)
asking.on('timeout', () => asking.destroy())
asking.on('error', () => process.exit(1))
