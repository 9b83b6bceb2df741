/** Checks the health of the Docker image: exits with 0 if the server on PORT answers /healthz with 200, otherwise with 1. */
import { get } from 'node:http'

const port = process.env.PORT || '3000'
// With PARLEY_ALLOWED_HOSTS, the probe must also send an allowed Host header.
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
