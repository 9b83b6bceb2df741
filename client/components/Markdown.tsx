/** Renders a model's text as Markdown, without HTML, images or requests to other servers. */
import './markdown.css'
import type { Nodes, Root, Table } from 'mdast'
import { createContext, createElement, Fragment, type ReactNode, useContext, useMemo } from 'react'
import { findHiddenHost } from '../../widget/frame/markdown/find-hidden-host.ts'
import { parseBlock } from '../../widget/frame/markdown/parse-block.ts'
import { splitBlocks, withDefinitions } from '../../widget/frame/markdown/split-blocks.ts'

/**
 * Maximum length in UTF-16 code units. Longer texts are shown as plain text, because parsing them would block
 * the page.
 */
const MAX_LENGTH = 60_000

/** Maps the identifiers of a block's link definitions to their addresses. */
const Definitions = createContext<ReadonlyMap<string, string>>(new Map())

export function Markdown({ text }: { readonly text: string }) {
  const blocks = useMemo(
    () => (text.length > MAX_LENGTH ? [text] : withDefinitions(splitBlocks(text))),
    [text],
  )
  return (
    <div className="markdown" dir="auto">
      {blocks.map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks are only ever added at the end
        <Block key={index} text={block} />
      ))}
    </div>
  )
}

/** Renders one block, as plain text if it exceeds the limits of the parser. */
function Block({ text }: { readonly text: string }) {
  const tree = useMemo(() => parseBlock(text), [text])
  const definitions = useMemo(() => listDefinitions(tree), [tree])
  if (tree === undefined) return <p className="markdown-plain">{text}</p>
  return (
    <Definitions value={definitions}>
      <Children of={tree} />
    </Definitions>
  )
}

function listDefinitions(tree: Root | undefined): Map<string, string> {
  const found = new Map<string, string>()
  for (const node of tree?.children ?? [])
    if (node.type === 'definition' && !found.has(node.identifier)) found.set(node.identifier, node.url)
  return found
}

function Children({ of: node }: { readonly of: Nodes }): ReactNode {
  if (!('children' in node)) return null
  // biome-ignore lint/suspicious/noArrayIndexKey: nodes are only ever added at the end
  return node.children.map((child, index) => <Node key={index} node={child} />)
}

/** The elements for nodes without further properties. */
const elements = {
  blockquote: 'blockquote',
  delete: 'del',
  emphasis: 'em',
  paragraph: 'p',
  strong: 'strong',
} as const

function Node({ node }: { readonly node: Nodes }): ReactNode {
  if (node.type in elements)
    return createElement(elements[node.type as keyof typeof elements], null, <Children of={node} />)
  switch (node.type) {
    case 'text':
      return node.value
    case 'html':
      return <span className="markdown-plain">{node.value}</span>
    case 'break':
      return <br />
    case 'thematicBreak':
      return <hr />
    case 'inlineCode':
      return <code>{node.value}</code>
    case 'code':
      return (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
        <pre tabIndex={0}>
          <code>{node.value}</code>
        </pre>
      )
    case 'heading':
      return (
        <p className="markdown-heading">
          <Children of={node} />
        </p>
      )
    case 'list':
      return createElement(
        node.ordered === true ? 'ol' : 'ul',
        node.ordered === true ? { start: node.start ?? 1 } : null,
        <Children of={node} />,
      )
    case 'listItem':
      return (
        <li>
          {node.checked == null ? null : node.checked ? '☑ ' : '☐ '}
          <Children of={node} />
        </li>
      )
    case 'table':
      return <TableView table={node} />
    default:
      return <Reference node={node} />
  }
}

/** Shows links, and images as links, because the page loads nothing from other servers. */
function Reference({ node }: { readonly node: Nodes }): ReactNode {
  const definitions = useContext(Definitions)
  switch (node.type) {
    case 'link':
      return (
        <Link href={node.url} text={textIn(node)}>
          <Children of={node} />
        </Link>
      )
    case 'linkReference':
      return (
        <Link href={definitions.get(node.identifier)} text={textIn(node)}>
          <Children of={node} />
        </Link>
      )
    case 'image':
      return (
        <Link href={node.url} text={node.alt ?? ''}>
          {node.alt || node.url}
        </Link>
      )
    case 'imageReference':
      return node.alt ?? null
    case 'footnoteReference':
      return <sup>{node.identifier}</sup>
    case 'footnoteDefinition':
      return (
        <Fragment>
          <sup>{node.identifier}</sup> <Children of={node} />
        </Fragment>
      )
    default:
      return null
  }
}

function TableView({ table }: { readonly table: Table }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <table tabIndex={0}>
      <tbody>
        {table.children.map((row, line) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows are only ever added at the end
          <tr key={line}>
            {row.children.map((cell, column) =>
              createElement(line === 0 ? 'th' : 'td', { key: column }, <Children of={cell} />),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface LinkProps {
  readonly href: string | undefined
  readonly text: string
  readonly children: ReactNode
}

const schemes: ReadonlySet<string> = new Set(['http:', 'https:', 'mailto:'])

/** Shows only the text of a link whose address is not an http, https or mailto URL. */
function Link({ href, text, children }: LinkProps) {
  if (href === undefined || !URL.canParse(href) || !schemes.has(new URL(href).protocol))
    return <span>{children}</span>
  const host = findHiddenHost(new URL(href).href, text)
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      <bdi>{children}</bdi>
      {host === undefined ? null : <bdi> ({host})</bdi>}
    </a>
  )
}

function textIn(node: Nodes): string {
  if ('value' in node) return node.value
  return 'children' in node ? node.children.map(textIn).join('') : ''
}
