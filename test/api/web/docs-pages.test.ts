/** Tests how the server publishes the documentation as Markdown. */
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'

test('/llms.txt links to every documentation page, and each link works', async () => {
  const app = await startApp()
  const index = await app.fetch(`${app.url}/llms.txt`)
  expect(index.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  const links = [...(await index.text()).matchAll(/\]\((\/[^)]+)\)/g)].map(([, path = '']) => path)
  const files = await readdir(new URL('../../../docs/', import.meta.url))
  const pages = files.filter((name) => name.endsWith('.md')).map((name) => `/docs/${name}`)
  expect(links).toEqual(expect.arrayContaining(pages))
  expect(links).toContain('/openapi.json')
  for (const path of links) expect([path, (await app.fetch(app.url + path)).status]).toEqual([path, 200])
})

test('the server returns a documentation page as the Markdown file from the repository', async () => {
  const app = await startApp()
  const response = await app.fetch(`${app.url}/docs/security.md`)
  expect(response.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
  expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  const file = new URL('../../../docs/security.md', import.meta.url)
  expect(await response.text()).toBe(await readFile(file, 'utf8'))
})

test('the server returns the example receivers that docs/webhooks.md links to', async () => {
  const app = await startApp()
  const text = await (await app.fetch(`${app.url}/docs/webhooks.md`)).text()
  const links = [...text.matchAll(/\]\((\.\.\/examples\/[^)]+)\)/g)].map(([, path = '']) => path)
  expect(links).toHaveLength(2)
  for (const link of links) {
    const response = await app.fetch(new URL(link, `${app.url}/docs/webhooks.md`))
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    const file = new URL(`../../../docs/${link}`, import.meta.url)
    expect(await response.text()).toBe(await readFile(file, 'utf8'))
  }
})

test('the server returns 404 for other files from the repository', async () => {
  const app = await startApp()
  for (const path of [
    '/docs/README.md',
    '/docs/adr/README.md',
    '/docs/missing.md',
    '/README.md',
    '/examples/hooks.mjs',
  ])
    expect([path, (await app.fetch(app.url + path)).status]).toEqual([path, 404])
})

test('the server serves every file of the API reference, including source maps', async () => {
  const app = await startApp()
  const html = await (await app.fetch(`${app.url}/docs`)).text()
  const paths = [...html.matchAll(/(?:src|href)="(\/docs\/[^"]+)"/g)].map(([, path = '']) => path)
  expect(paths).toHaveLength(4)
  const maps: string[] = []
  for (const path of paths) {
    const text = await (await app.fetch(app.url + path)).text()
    for (const [, name = ''] of text.matchAll(/# sourceMappingURL=([\w.-]+)/g))
      maps.push(new URL(name, app.url + path).pathname)
  }
  expect(maps).toHaveLength(1)
  for (const path of [...paths, ...maps])
    expect([path, (await app.fetch(app.url + path)).status]).toEqual([path, 200])
})
