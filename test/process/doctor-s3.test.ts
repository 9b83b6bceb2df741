/** What `parley doctor` and a start say of a bucket. */
import { randomUUID } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { runCommandHere } from '../support/command.ts'
import { makeFolder, runParley, startServer } from '../support/process.ts'
import { credentials, S3Server } from '../support/s3-server.ts'

// These start processes, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** What it says of the bucket. */
async function examine(folder: string, server: S3Server): Promise<string | undefined> {
  const end = await runCommandHere(['doctor', '--json'], {
    folder,
    env: { PORT: '0', ...server.environment },
  })
  expect(end.stdout + end.stderr).not.toContain(credentials.secretAccessKey)
  const { checks } = JSON.parse(end.stdout) as { checks: { check: string; state: string; message: string }[] }
  const found = checks.find(({ check }) => check === 'bucket')
  return found && `${found.state}: ${found.message}`
}

describe('doctor', () => {
  test('finds a bucket well before the first start and after it, and leaves nothing there', async () => {
    const server = await S3Server.start()
    const folder = await makeFolder()
    expect(await examine(folder, server)).toMatch(/^ok: test-bucket at http\S+ is readable and writable$/)
    expect([server.objects.size, server.uploads.size]).toEqual([0, 0])
    await (await startServer({ folder, env: server.environment })).stop()
    expect(await examine(folder, server)).toMatch(/^ok: /)
    expect([...server.objects.keys()]).toEqual(['files/installation', 'artifacts/installation'])
  })

  test('finds a bucket that cannot be written, one that does not list, and one of another installation', async () => {
    const server = await S3Server.start()
    const folder = await makeFolder()
    server.fail('ListMultipartUploads', { status: 501, code: 'NotImplemented' })
    expect(await examine(folder, server)).toMatch(/^warn: .* unfinished uploads cannot be listed/)
    server.fail('PutObject', { status: 403, code: 'AccessDenied' })
    expect(await examine(folder, server)).toMatch(
      /^fail: .*they need the permissions s3:ListBucket, .*s3:PutObject/,
    )
    server.objects.set('files/installation', { bytes: Buffer.from('theirs'), modifiedMs: 0 })
    expect(await examine(folder, server)).toMatch(/^fail: .*belong to another installation/)
  })
})

describe('a start', () => {
  test('with a bucket that is not there ends with a sentence', async () => {
    const server = await S3Server.start()
    const env = { ...server.environment, S3_BUCKET: 'another' }
    const { code, stderr } = await runParley(['serve'], {
      folder: await makeFolder(),
      env: { PORT: '0', ...env },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^parley: The bucket another at http\S+ does not exist; .*\n$/)
  })

  test('beside a folder of files from before is refused, until that is moved away', async () => {
    const server = await S3Server.start()
    const folder = await makeFolder()
    await (await startServer({ folder })).stop()
    await mkdir(join(folder, 'data/files'), { recursive: true })
    await writeFile(join(folder, 'data/files', randomUUID()), 'from before')
    const options = { folder, env: { PORT: '0', ...server.environment } }
    const { code, stderr } = await runParley(['serve'], options)
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/contains files from before S3_BUCKET .* files\/ in the bucket/),
    ])
    await rename(join(folder, 'data/files'), join(folder, 'files'))
    expect(await (await startServer(options)).stop()).toMatchObject({ code: 0 })
  })
})
