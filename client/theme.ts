/**
 * Defines the console's theme: one accent color, an 8 px grid, system fonts, and readable colors in both
 * schemes.
 */
import {
  Badge,
  type CSSVariablesResolver,
  createTheme,
  localStorageColorSchemeManager,
  type MantineColorsTuple,
} from '@mantine/core'

const indigo: MantineColorsTuple = [
  '#eef2ff',
  '#e0e7ff',
  '#c7d2fe',
  '#a5b4fc',
  '#818cf8',
  '#6366f1',
  '#4f46e5',
  '#4338ca',
  '#3730a3',
  '#312e81',
]

/** The dark scheme's base colors, from lightest to darkest. */
const dark: MantineColorsTuple = [
  '#d7dae3',
  '#b6bac7',
  '#9a9fae',
  '#6c7283',
  '#3d424f',
  '#2f333e',
  '#242730',
  '#191b22',
  '#14161c',
  '#0f1115',
]

export const theme = createTheme({
  colors: { indigo, dark },
  primaryColor: 'indigo',
  primaryShade: { light: 6, dark: 6 },
  autoContrast: true,
  defaultRadius: 'md',
  cursorType: 'pointer',
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, monospace',
  components: { Badge: Badge.extend({ defaultProps: { tt: 'none' } }) },
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '1.375rem', lineHeight: '1.3' },
      h2: { fontSize: '1.0625rem', lineHeight: '1.4' },
      h3: { fontSize: '0.9375rem', lineHeight: '1.4' },
    },
  },
})

/** Replaces the library's grays and reds, which are too pale for small text (WCAG 2.2, 1.4.3). */
export const resolveVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5a6072',
    '--mantine-color-placeholder': '#6b7183',
    '--mantine-color-error': '#c02626',
    '--mantine-color-yellow-light-color': '#8a5300',
    '--mantine-color-red-light-color': '#b42318',
    '--parley-surface': '#ffffff',
    '--parley-canvas': '#f7f8fa',
    '--parley-line': '#e3e5eb',
    '--parley-line-strong': '#c9cdd8',
    '--parley-accent-text': '#4338ca',
    '--mantine-color-anchor': '#4338ca',
    '--parley-accent-soft': '#eef2ff',
    '--parley-good': '#15703f',
    '--parley-warn': '#8a5300',
    '--parley-bad': '#b42318',
    '--parley-code-key': '#4338ca',
    '--parley-code-value': '#9a3412',
    '--parley-code-comment': '#5f6779',
    '--parley-active-line': '#f4f5fb',
    '--parley-selection': '#dbe0fd',
  },
  dark: {
    '--mantine-color-dimmed': '#a4a9b8',
    '--mantine-color-placeholder': '#8d93a4',
    '--mantine-color-error': '#ff8a80',
    '--mantine-color-yellow-light': '#33280f',
    '--mantine-color-yellow-light-color': '#f0b860',
    '--mantine-color-red-light': '#3a1b1b',
    '--mantine-color-red-light-color': '#ff9a90',
    '--mantine-color-indigo-light': '#23264a',
    '--mantine-color-indigo-light-hover': '#2c305c',
    '--mantine-color-indigo-light-color': '#c7d2fe',
    '--parley-surface': '#191b22',
    '--parley-canvas': '#0f1115',
    '--parley-line': '#2a2e38',
    '--parley-line-strong': '#3d424f',
    '--parley-accent-text': '#a5b4fc',
    // Has enough contrast on hovered table rows too.
    '--mantine-color-anchor': '#a5b4fc',
    '--parley-accent-soft': '#23264a',
    '--parley-good': '#6fd39a',
    '--parley-warn': '#f0b860',
    '--parley-bad': '#ff9a90',
    '--parley-code-key': '#a5b4fc',
    '--parley-code-value': '#f5b78c',
    '--parley-code-comment': '#9aa0b0',
    '--parley-active-line': '#1f222b',
    '--parley-selection': '#343a66',
  },
})

/** Stores the selected scheme in this browser. */
export const colorSchemeManager = localStorageColorSchemeManager({ key: 'parley-color-scheme' })
