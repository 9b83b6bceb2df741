/** Draws the console's icons as strokes in the text color, on a 24 by 24 grid. */

const paths = {
  agents:
    'M12 3v3M8 6h8a3 3 0 0 1 3 3v7a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3V9a3 3 0 0 1 3-3zM9.5 11.5v1.5M14.5 11.5v1.5M2.5 11v3M21.5 11v3',
  conversations: 'M4 5h11v8H9l-3.5 3v-3H4zM18 9h2v8h-1.5v3L15 17h-5',
  visitors:
    'M9 5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM3 20a6 6 0 0 1 12 0M16 5.3a3.5 3.5 0 0 1 0 6.4M17.5 14.7A6 6 0 0 1 21 20',
  webhooks: 'M9 3v5M15 3v5M6.5 8h11v3a5.5 5.5 0 0 1-11 0zM12 16.5V21',
  keys: 'M14.5 3.5a6 6 0 1 1-4.8 9.6L3.5 19.3V21H7v-2.5h2.5V16H12l1.1-1.1M16.5 7.5h.01',
  usage: 'M4 20V10M10 20V4M16 20v-8M21 20H3',
  budgets: 'M4 18a8.5 8.5 0 1 1 16 0M12 15l4-5.5M12 15h.01M4 18h16',
  uploads: 'M12 15V4M7.5 8.5 12 4l4.5 4.5M4 15v3a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-3',
  files: 'M13.5 3H7a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2V8.5zM13.5 3v5.5H19M9 13h6M9 17h6',
  admin: 'M12 3l7.5 3v5.5c0 4.6-3.2 8-7.5 9.5-4.3-1.5-7.5-4.9-7.5-9.5V6zM9 12l2.2 2.2L15.2 10',
  docs: 'M6 3.5h12v17H6a2 2 0 0 1-2-2v-13a2 2 0 0 1 2-2zM4 18.5a2 2 0 0 1 2-2h12M9 8h5',
  prices:
    'M12 3v18M16.5 7.5C16 6 14.3 5 12 5 9.5 5 7.5 6.3 7.5 8.5c0 4.5 9 2.5 9 7 0 2.2-2 3.5-4.5 3.5s-4.2-1.2-4.7-2.8',
  models: 'M12 3.5 20.5 8 12 12.5 3.5 8zM3.5 12 12 16.5 20.5 12M3.5 16 12 20.5 20.5 16',
  menu: 'M4 7h16M4 12h16M4 17h16',
  language:
    'M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM3 12h18M12 3c3 3 3.5 6 3.5 9s-.5 6-3.5 9c-3-3-3.5-6-3.5-9S9 6 12 3z',
  sun: 'M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  system: 'M4 5h16v11H4zM9 20h6M12 16v4',
  chevron: 'M6 9l6 6 6-6',
  plus: 'M12 5v14M5 12h14',
  search: 'M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16 16l4.5 4.5',
  copy: 'M9 9h10a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H9a1 1 0 0 1-1-1V10a1 1 0 0 1 1-1zM16 9V5a1 1 0 0 0-1-1H5a1 1 0 0 0-1 1v10a1 1 0 0 0 1 1h3',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  cross: 'M6 6l12 12M18 6L6 18',
  trash: 'M4 7h16M9.5 7V4.5h5V7M6 7l1 13h10l1-13M10 11v5M14 11v5',
  columns: 'M4 5h16v14H4zM9.5 5v14M14.5 5v14',
  undo: 'M9 7H15a5 5 0 0 1 0 10H8M9 3 5 7l4 4',
  dots: 'M5 12h.01M12 12h.01M19 12h.01',
  send: 'M4 12l16-8-6 16-3-6.5zM11 13.5L20 4',
  stop: 'M7 7h10v10H7z',
  up: 'M12 19V5M6 11l6-6 6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  warning: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  offline: 'M3 3l18 18M8.5 16a5 5 0 0 1 7 0M5 12.5a10 10 0 0 1 4-2.3M15 10.2a10 10 0 0 1 4 2.3M12 20h.01',
  signOut: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
  tool: 'M14.5 6.5a4 4 0 0 0-5.2 5.2L3.5 17.5l3 3 5.8-5.8a4 4 0 0 0 5.2-5.2L15 12l-3-3z',
  play: 'M7 5l12 7-12 7z',
  edit: 'M4 20h4L19.5 8.5a2.1 2.1 0 0 0-4-4L4 16zM13.5 6.5l4 4',
  expand: 'M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5',
  shrink: 'M4 9h5V4M20 9h-5V4M4 15h5v5M20 15h-5v5',
  pause: 'M8 5v14M16 5v14',
  back: 'M19 12H5M11 6l-6 6 6 6',
  bell: 'M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15zM10 21h4',
  clock: 'M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17zM12 7.5V12l3 2',
  download: 'M12 4v11M7.5 11.5 12 16l4.5-4.5M4 17.5v1a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-1',
  filter: 'M4 6h16M7 12h10M10 18h4',
  keyboard: 'M3 6.5h18v11H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8',
  person: 'M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM4.5 20.5a7.5 7.5 0 0 1 15 0',
  side: 'M4 5h16v14H4zM14.5 5v14',
  tag: 'M3.5 4.5v7l9 9 8-8-9-9h-7zM8 8.5h.01',
  thumbDown:
    'M7 14V5h9.3a2 2 0 0 1 2 1.6l1.2 5.4a2 2 0 0 1-2 2.4H13l.7 3.9a1.9 1.9 0 0 1-3.5 1.2L7 14zM7 14H4V5h3',
  thumbUp:
    'M7 10v9h9.3a2 2 0 0 0 2-1.6l1.2-5.4a2 2 0 0 0-2-2.4H13l.7-3.9a1.9 1.9 0 0 0-3.5-1.2L7 10zM7 10H4v9h3',
} as const

export type IconName = keyof typeof paths

export const iconNames = Object.keys(paths) as readonly IconName[]

/** Hidden from screen readers, because the text or button next to it has a name. */
export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      viewBox="0 0 24 24"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth={1.7}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  )
}
