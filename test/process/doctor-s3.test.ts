/** Tests the problems with an S3 bucket that `parley doctor` and a starting server report. */
import { randomUUID } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { runCommandInProcess } from '../support/command.ts'
import { makeFolder, runParley, startServer } from '../support/process.ts'
import { credentials, S3Server } from '../support/s3-server.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Runs doctor; returns its finding about the bucket. */
async function runDoctor(folder: string, server: S3Server): Promise<string | undefined> {
  const end = await runCommandInProcess(['doctor', '--json'], {
    folder,
    env: { PORT: '0', ...server.environment },
  })
  expect(end.stdout + end.stderr).not.toContain(credentials.secretAccessKey)
  const { checks } = JSON.parse(end.stdout) as { checks: { check: string; state: string; message: string }[] }
  const found = checks.find(({ check }) => check === 'bucket')
  return found && `${found.state}: ${found.message}`
}

describe('doctor', () => {
  test('reports a working bucket before and after the first start and leaves no test objects behind', async () => {
    const server = await S3Server.start()
    const folder = await makeFolder()
    expect(await runDoctor(folder, server)).toMatch(/^ok: test-bucket at http\S+ is readable and writable$/)
    expect([server.objects.size, server.uploads.size]).toEqual([0, 0])
    await (await startServer({ folder, env: server.environment })).stop()
    expect(await runDoctor(folder, server)).toMatch(/^ok: /)
    expect([...server.objects.keys()]).toEqual(['files/installation', 'artifacts/installation'])
  })

  test('reports a bucket that is read-only, cannot list uploads or belongs to another installation', async () => {
    const server = await S3Server.start()
    const folder = await makeFolder()
    server.fail('ListMultipartUploads', { status: 501, code: 'NotImplemented' })
    expect(await runDoctor(folder, server)).toMatch(/^warn: .* unfinished uploads cannot be listed/)
    server.fail('PutObject', { status: 403, code: 'AccessDenied' })
    expect(await runDoctor(folder, server)).toMatch(
      /^fail: .*they need the permissions s3:ListBucket, .*s3:PutObject/,
    )
    server.objects.set('files/installation', { bytes: Buffer.from('theirs'), modifiedMs: 0 })
    expect(await runDoctor(folder, server)).toMatch(/^fail: .*belong to another installation/)
  })
})

describe('starting a server', () => {
  test('fails with a one-sentence error when the bucket does not exist', async () => {
    const server = await S3Server.start()
    const env = { ...server.environment, S3_BUCKET: 'another' }
    const { code, stderr } = await runParley(['serve'], {
      folder: await makeFolder(),
      env: { PORT: '0', ...env },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^parley: The bucket another at http\S+ does not exist; .*\n$/)
  })

  test('fails if the data directory contains files that were stored before S3_BUCKET was set', async () => {
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
