/** Runs as the Docker health check: exits with 0 if the server on PORT returns 200 for /healthz, otherwise with 1. */
import { get } from 'node:http'

const port = process.env.PORT || '3000'
// If PARLEY_ALLOWED_HOSTS is set, the server rejects a request with any other Host header.
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
