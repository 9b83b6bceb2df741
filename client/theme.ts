/** Maps the design tokens (`src/design/tokens.css`) to the UI library's theme. */
import {
  Badge,
  Button,
  type CSSVariablesResolver,
  createTheme,
  Input,
  localStorageColorSchemeManager,
  type MantineColorsTuple,
} from '@mantine/core'

const indigo: MantineColorsTuple = [
  '#eef0ff',
  '#e0e3ff',
  '#c7cdfe',
  '#a5b4fc',
  '#818cf8',
  '#6366f1',
  '#4f46e5',
  '#4338ca',
  '#3730a3',
  '#312e81',
]

/** Darker than the library's red, so that white text on it is readable. */
const red: MantineColorsTuple = [
  '#fdeeec',
  '#fbd5d1',
  '#f5aca5',
  '#ee8177',
  '#e75c50',
  '#dc4034',
  '#c62d21',
  '#b42318',
  '#8f1c13',
  '#6e150e',
]

/** The dark scheme's base colors, from lightest to darkest. */
const dark: MantineColorsTuple = [
  '#eceef3',
  '#b6bac7',
  '#a3a8b6',
  '#6c7283',
  '#3c404d',
  '#292c36',
  '#20232b',
  '#16181e',
  '#121419',
  '#0e0f13',
]

export const theme = createTheme({
  colors: { indigo, red, dark },
  primaryColor: 'indigo',
  primaryShade: { light: 6, dark: 6 },
  autoContrast: true,
  defaultRadius: 'md',
  radius: { xs: '4px', sm: '6px', md: '8px', lg: '12px', xl: '16px' },
  cursorType: 'pointer',
  respectReducedMotion: true,
  fontFamily: 'var(--font)',
  fontFamilyMonospace: 'var(--font-mono)',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.25rem' },
  lineHeights: { xs: '1.4', sm: '1.45', md: '1.5', lg: '1.5', xl: '1.4' },
  components: {
    Badge: Badge.extend({ defaultProps: { tt: 'none', fw: 500, radius: 'sm' } }),
    // Gives all controls one size, except the smaller `xs` controls in rows and table cells.
    Button: Button.extend({
      defaultProps: { fw: 500 },
      vars: (_theme, { size }) => ({
        root: size === 'xs' ? {} : { '--button-height': '34px', '--button-fz': '0.8125rem' },
      }),
    }),
    Input: Input.extend({
      vars: (_theme, { size }) => ({
        wrapper: size === 'xs' ? {} : { '--input-height': '34px', '--input-fz': '0.8125rem' },
      }),
    }),
  },
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '1.25rem', lineHeight: '1.3' },
      h2: { fontSize: '1rem', lineHeight: '1.4' },
      h3: { fontSize: '0.875rem', lineHeight: '1.4' },
    },
  },
})

const sameInBoth = {
  '--mantine-color-body': 'var(--surface)',
  '--mantine-color-text': 'var(--text)',
  '--mantine-color-dimmed': 'var(--muted)',
  '--mantine-color-placeholder': 'var(--placeholder)',
  '--mantine-color-error': 'var(--bad)',
  '--mantine-color-anchor': 'var(--accent-text)',
  '--mantine-color-default': 'var(--surface)',
  '--mantine-color-default-hover': 'var(--raised)',
  '--mantine-color-default-border': 'var(--line-strong)',
  '--mantine-color-yellow-light': 'var(--warn-soft)',
  '--mantine-color-yellow-light-color': 'var(--warn)',
  '--mantine-color-red-light': 'var(--bad-soft)',
  '--mantine-color-red-light-color': 'var(--bad)',
  '--mantine-color-green-light': 'var(--good-soft)',
  '--mantine-color-green-light-color': 'var(--good)',
  '--mantine-color-indigo-light': 'var(--accent-soft)',
  '--mantine-color-indigo-light-color': 'var(--accent-text)',
}

/** Replaces the library's colors, some of which are too pale for small text (WCAG 2.2, 1.4.3). */
export const resolveVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: sameInBoth,
  dark: { ...sameInBoth, '--mantine-color-indigo-light-hover': '#2c305c' },
})

/** Stores the selected scheme in this browser. */
export const colorSchemeManager = localStorageColorSchemeManager({ key: 'parley-color-scheme' })
