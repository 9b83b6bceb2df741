/** The widget as a React component. */
export const widget = 1
