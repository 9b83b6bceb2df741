/** Tests the errors for numbers in query strings, for all operations that the API document describes. */
import { describe, expect, test } from 'vitest'
import { renderApiDocument } from '../../../src/server/api.ts'
import { root, startAdminApp } from '../../support/admin.ts'
import { asUser, readMe, revealKey } from '../../support/console.ts'

interface Parameter {
  readonly in: string
  readonly name: string
  readonly schema?: { readonly type?: string; readonly minimum?: number; readonly maximum?: number }
}
type Operation = { readonly parameters?: readonly Parameter[] }

const { paths } = JSON.parse(JSON.stringify(renderApiDocument())) as {
  paths: Record<string, Record<string, Operation>>
}
const numbers = Object.entries(paths).flatMap(([path, methods]) =>
  Object.values(methods).flatMap(({ parameters = [] }) =>
    parameters
      .filter((one) => one.in === 'query' && one.schema?.type === 'integer')
      .map(({ name, schema = {} }) => ({ path, name, ...schema })),
  ),
)

async function start() {
  const app = await startAdminApp()
  await readMe(app, root)
  const key = await revealKey(app, root)
  return async (path: string) => {
    const { status, body } = await app.call(
      'GET',
      path.replace(/\{\w+\}/g, 'unknown'),
      path.startsWith('/v1/manager/') ? asUser(root) : { key },
    )
    return [status, body.error?.message ?? body.error]
  }
}

const bounds = ({ minimum, maximum }: (typeof numbers)[number]) =>
  maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `between ${minimum} and ${maximum}`

describe('a number in a query string', () => {
  test('is documented with its bounds for more than twenty parameters', () => {
    expect(numbers.length).toBeGreaterThan(20)
    for (const one of numbers)
      expect(one).toMatchObject({ minimum: expect.any(Number), maximum: expect.any(Number) })
  })

  test.each(['abc', '-1', '1e400', '1.5', '', ' 1', '0x10', 'NaN', '9'.repeat(30)])(
    'is rejected with an error that names the field and its bounds if it is %j',
    async (value) => {
      const call = await start()
      for (const one of numbers)
        expect(await call(`${one.path}?${one.name}=${encodeURIComponent(value)}`), one.path).toEqual([
          400,
          `${one.name}: must be an integer ${bounds(one)}`,
        ])
    },
  )

  test('is rejected with an error that names the bound if it exceeds one', async () => {
    const call = await start()
    for (const { path, name, minimum = 0, maximum = 0 } of numbers) {
      if (maximum < Number.MAX_SAFE_INTEGER)
        expect(await call(`${path}?${name}=${maximum + 1}`), path).toEqual([
          400,
          `${name}: must be at most ${maximum}`,
        ])
      if (minimum > 0)
        expect(await call(`${path}?${name}=${minimum - 1}`), path).toEqual([
          400,
          `${name}: must be at least ${minimum}`,
        ])
    }
  })
})
