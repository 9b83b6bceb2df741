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

test('every documentation page is also an HTML page whose links, pictures and anchors work', async () => {
  const app = await startApp()
  const index = await (await app.fetch(`${app.url}/docs/index.json`)).json()
  const files = await readdir(new URL('../../../docs/', import.meta.url))
  const names = files.filter((name) => name.endsWith('.md')).map((name) => `/docs/${name.slice(0, -3)}`)
  expect(index.pages.map(({ path }: { path: string }) => path).sort()).toEqual(names.sort())

  const pages = new Map<string, string>()
  for (const path of names) {
    const response = await app.fetch(app.url + path)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'self'; /)
    pages.set(path, await response.text())
  }
  const statuses = new Map<string, number>()
  for (const [page, html] of pages) {
    for (const [, target = ''] of html.matchAll(/ (?:href|src)="((?:\/|#)[^"]*)"/g)) {
      const { pathname, hash } = new URL(target, app.url + page)
      if (!statuses.has(pathname)) statuses.set(pathname, (await app.fetch(app.url + pathname)).status)
      expect([page, target, statuses.get(pathname)]).toEqual([page, target, 200])
      const html = pages.get(pathname)
      if (hash !== '' && html !== undefined)
        expect(html).toContain(` id="${decodeURIComponent(hash.slice(1))}"`)
    }
  }
  for (const { path, headings } of index.pages)
    for (const heading of headings) expect(pages.get(path)).toContain(` id="${heading.path.split('#')[1]}"`)
})

test('HTML pages of the documentation contain no scripts, inline styles or links to files that are not served', async () => {
  const app = await startApp()
  for (const name of ['design', 'widget', 'security', 'library']) {
    const html = await (await app.fetch(`${app.url}/docs/${name}`)).text()
    expect(html).not.toMatch(/<script| style=|href="\.\.|src="\.\./)
    expect(html).toContain('<table>')
  }
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
