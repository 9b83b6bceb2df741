/** Serves the documentation as HTML under `/docs/<name>`, its pictures, and an index for the console's search. */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { designHead, markPath } from '../design/design.ts'
import { IMMUTABLE, type PageFile } from '../http/response.ts'
import { StartupError } from '../lib/errors.ts'
import { groupPages } from './docs-groups.ts'
import { commonHeaders } from './page.ts'

/** A page that `scripts/build-docs.ts` has rendered. */
const DocsPage = z.object({
  name: z.string().regex(/^[\w-]+$/),
  title: z.string(),
  headings: z.array(z.object({ id: z.string(), title: z.string(), level: z.number() })),
  html: z.string(),
})
type DocsPage = z.infer<typeof DocsPage>

const Manifest = z.object({
  pages: z.array(DocsPage),
  pictures: z.array(z.string().regex(/^[\w-]+\.png$/)),
})

/** The documentation's files, keyed by path. */
export type DocumentationFiles = ReadonlyMap<string, PageFile>

const builtFolder = new URL('../../dist/docs/', import.meta.url)
const style = readFileSync(new URL('documentation.css', import.meta.url), 'utf8')
const stylePath = `/docs/documentation-${hash('sha256', style, 'hex').slice(0, 16)}.css`

const pagePolicy =
  "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

export async function loadDocumentation(): Promise<DocumentationFiles> {
  try {
    const text = await readFile(new URL('manifest.json', builtFolder), 'utf8')
    const { pages, pictures } = Manifest.parse(JSON.parse(text))
    return new Map([
      ...pages.map((page) => textFile(`/docs/${page.name}`, renderPage(page, pages), 'text/html')),
      textFile('/docs/index.json', JSON.stringify(renderIndex(pages)), 'application/json'),
      textFile(stylePath, style, 'text/css', IMMUTABLE),
      ...pictures.map((name): [string, PageFile] => [
        `/docs/pictures/${name}`,
        { body: { folder: fileURLToPath(builtFolder), name }, headers: headersOf('image/png', 'no-cache') },
      ]),
    ])
  } catch (cause) {
    const path = fileURLToPath(builtFolder)
    throw new StartupError(`The documentation has not been built in ${path}; run \`npm run build\`.`, {
      cause,
    })
  }
}

/** Lists the pages in the order of the navigation, with the headings that the console's search finds. */
function renderIndex(pages: readonly DocsPage[]) {
  return {
    pages: groupPages(pages).flatMap(({ pages: listed }) =>
      listed.map(({ name, title, headings }) => ({
        title,
        path: `/docs/${name}`,
        headings: headings.map((heading) => ({ title: heading.title, path: `/docs/${name}#${heading.id}` })),
      })),
    ),
  }
}

function renderPage(page: DocsPage, pages: readonly DocsPage[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(page.title)} · Parley</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${designHead}
<link rel="stylesheet" href="${stylePath}">
<link rel="alternate" type="text/markdown" href="/docs/${page.name}.md">
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
<a class="brand" href="/docs/getting-started"><img class="brand-mark" src="${markPath}" alt="" width="24" height="24">Parley<span class="brand-rest"> documentation</span></a>
<nav aria-label="Site"><a class="to-pages" href="#pages">All pages</a><a href="/docs">API reference</a><a href="/console">Console</a></nav>
</header>
<div class="columns">
<main id="content" tabindex="-1">
${page.html}
<p class="source"><a href="/docs/${page.name}.md">View as Markdown</a></p>
</main>
${renderContents(page)}
${renderNavigation(page, pages)}
</div>
</body>
</html>
`
}

function renderNavigation(current: DocsPage, pages: readonly DocsPage[]): string {
  const groups = groupPages(pages).map(({ title, pages: listed }) => {
    const links = listed.map((page) => {
      const state = page === current ? ' aria-current="page"' : ''
      return `<li><a href="/docs/${page.name}"${state}>${escapeHtml(page.title)}</a></li>`
    })
    return `<h2>${title}</h2>\n<ul>\n${links.join('\n')}\n</ul>`
  })
  return `<nav id="pages" class="pages" aria-label="Documentation">\n${groups.join('\n')}\n</nav>`
}

/** Lists the page's sections, except on pages with a single section. */
function renderContents({ headings }: DocsPage): string {
  const sections = headings.filter(({ level }) => level <= 3)
  if (sections.length < 2) return ''
  const links = sections.map(
    ({ id, title, level }) => `<li class="level-${level}"><a href="#${id}">${escapeHtml(title)}</a></li>`,
  )
  return `<nav class="contents" aria-label="On this page">\n<h2>On this page</h2>\n<ul>\n${links.join('\n')}\n</ul>\n</nav>`
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}

function textFile(
  path: string,
  text: string,
  mediaType: string,
  cacheControl = 'no-cache',
): [string, PageFile] {
  return [path, { body: { text }, headers: headersOf(`${mediaType}; charset=utf-8`, cacheControl) }]
}

function headersOf(mediaType: string, cacheControl: string): PageFile['headers'] {
  return {
    ...commonHeaders,
    'Content-Type': mediaType,
    'Content-Security-Policy': pagePolicy,
    'Cache-Control': cacheControl,
  }
}
