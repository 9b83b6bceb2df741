/** Runs `s3rver`, an independent S3 implementation, in a separate process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { makeFolder } from './process.ts'

const BUCKET = 'kept-by-s3rver'
/** The only access key that s3rver accepts. */
const KEY = 'S3RVER'

/** Starts a server that stops when the test ends; returns the environment variables for it. */
export async function startS3rver(): Promise<Record<string, string>> {
  const program = createRequire(import.meta.url).resolve('s3rver/bin/s3rver.js')
  const words = [
    '--directory',
    join(await makeFolder(), 's3'),
    '--address',
    '127.0.0.1',
    '--port',
    '0',
    '--silent',
  ]
  const child = spawn(
    process.execPath,
    [program, ...words, '--no-vhost-buckets', '--configure-bucket', BUCKET],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let printed = ''
  for await (const text of child.stdout) {
    printed += text
    const port = /listening on 127\.0\.0\.1:(\d+)/.exec(printed)?.[1]
    if (port === undefined) continue
    child.stdout.resume()
    return {
      S3_BUCKET: BUCKET,
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      AWS_ACCESS_KEY_ID: KEY,
      AWS_SECRET_ACCESS_KEY: KEY,
    }
  }
  throw new Error(`s3rver did not start: ${printed}`)
}
