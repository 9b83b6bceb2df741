/** Renders the pages in `docs/` as HTML into `dist/docs/manifest.json`, which the server reads (docs/design.md). */
import { copyFile, readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Element, ElementContent, Nodes, Root } from 'hast'
import { toJsxRuntime } from 'hast-util-to-jsx-runtime'
import { common, createLowlight } from 'lowlight'
import { toHast } from 'mdast-util-to-hast'
import { createElement } from 'react'
import { Fragment, jsx, jsxs } from 'react/jsx-runtime'
import { renderToStaticMarkup } from 'react-dom/server'
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import { unified } from 'unified'
import { renderAnchor } from './heading-anchor.ts'
import { replaceBuild, root } from './web-folder.ts'
import { webBuilds } from './web-sources.mjs'

interface Heading {
  readonly id: string
  readonly title: string
  readonly level: number
}

interface RenderedPage {
  /** File name without extension. */
  readonly name: string
  readonly title: string
  readonly headings: readonly Heading[]
  readonly html: string
}

/** The files outside `docs/` that the server serves, as patterns of link targets. */
const servedFiles = /^\.\.\/(openapi\.json|examples\/webhook-[\w-]+\.mjs)$/

const parser = unified().use(remarkParse).use(remarkGfm)
const lowlight = createLowlight(common)

function renderPage(name: string, markdown: string): RenderedPage {
  const tree = toHast(parser.parse(markdown)) as Root
  const headings: Heading[] = []
  visitElements(tree, (element) => {
    if (/^h[1-6]$/.test(element.tagName)) addAnchor(element, headings)
    else if (element.tagName === 'a') rewriteLink(element)
    else if (element.tagName === 'img') rewriteImage(element)
    else if (element.tagName === 'pre') highlight(element)
    else if (element.tagName === 'table') makeScrollable(element)
  })
  const title = headings.find(({ level }) => level === 1)?.title ?? name
  const content = toJsxRuntime(tree, { Fragment, jsx, jsxs, tableCellAlignToStyle: false })
  const sections = headings.filter(({ level }) => level > 1)
  return {
    name,
    title,
    headings: sections,
    html: renderToStaticMarkup(createElement(Fragment, null, content)),
  }
}

/** Visits children first, so that a changed element's new children are not visited. */
function visitElements(node: Nodes, visit: (element: Element) => void): void {
  if ('children' in node) for (const child of [...node.children]) visitElements(child, visit)
  if (node.type === 'element') visit(node)
}

function textOf(node: Nodes): string {
  if (node.type === 'text') return node.value
  return 'children' in node ? node.children.map(textOf).join('') : ''
}

/** Makes a heading a link to itself; equal headings of a page get different anchors. */
function addAnchor(heading: Element, headings: Heading[]): void {
  const title = textOf(heading)
  const anchor = renderAnchor(title)
  const level = Number(heading.tagName.slice(1))
  const earlier = headings.filter(({ title: other }) => renderAnchor(other) === anchor).length
  const id = earlier === 0 ? anchor : `${anchor}-${earlier}`
  headings.push({ id, title, level })
  heading.properties.id = id
  if (level > 1) heading.children = [element('a', { href: `#${id}` }, heading.children)]
}

/** Points links at the served pages, and removes links to files that the server does not serve. */
function rewriteLink(link: Element): void {
  const href = String(link.properties.href ?? '')
  const page = /^([\w-]+)\.md(#.*)?$/.exec(href)
  if (page !== null) link.properties.href = `/docs/${page[1]}${page[2] ?? ''}`
  else if (servedFiles.test(href)) link.properties.href = href.slice(2)
  else if (/^https?:/.test(href)) link.properties.rel = ['noreferrer']
  else if (!href.startsWith('#')) {
    link.tagName = 'span'
    link.properties = {}
  }
}

/** Points images at the served pictures; other images are not in the npm package. */
function rewriteImage(image: Element): void {
  const source = String(image.properties.src ?? '')
  if (source.startsWith('pictures/'))
    Object.assign(image.properties, { src: `/docs/${source}`, loading: 'lazy' })
  else Object.assign(image, { tagName: 'span', properties: {}, children: [] })
}

function highlight(block: Element): void {
  block.properties.tabIndex = 0
  const [code] = block.children
  if (code?.type !== 'element') return
  const names = Array.isArray(code.properties.className) ? code.properties.className.map(String) : []
  const language = names.find((name) => name.startsWith('language-'))?.slice('language-'.length)
  if (language !== undefined && lowlight.registered(language))
    code.children = lowlight.highlight(language, textOf(code)).children as ElementContent[]
}

function makeScrollable(table: Element): void {
  const copy = { ...table }
  // A region that scrolls must be reachable by keyboard.
  Object.assign(table, element('div', { className: ['table'], tabIndex: 0 }, [copy]))
}

function element(tagName: string, properties: Element['properties'], children: ElementContent[]): Element {
  return { type: 'element', tagName, properties, children }
}

await replaceBuild(webBuilds.docs, async (target) => {
  const folder = join(root, 'docs')
  const files = (await readdir(folder)).filter((name) => name.endsWith('.md')).sort()
  const pages = files.map(async (file) =>
    renderPage(basename(file, '.md'), await readFile(join(folder, file), 'utf8')),
  )
  const rendered = await Promise.all(pages)
  const pictures = [...new Set(rendered.flatMap(({ html }) => listPictures(html)))].sort()
  for (const name of pictures) await copyFile(join(folder, 'pictures', name), join(target, name))
  return { pages: rendered, pictures }
})

function listPictures(html: string): string[] {
  return Array.from(html.matchAll(/src="\/docs\/pictures\/([^"]+)"/g), ([, name = '']) => name)
}
